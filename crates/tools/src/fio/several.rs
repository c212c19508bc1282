//! Jobs of fio that are reported as one, and how a report tells: its figures are not what the options
//! beside it ask for.

use super::jobs::{SEVERAL_JOBS, clones, of_three, text};
use crate::Operation;
use crate::number::{differ, whole};
use crate::result::{Part, ToolResult};

/// The relative difference that is more than fio's rounding.
pub(super) const TOLERANCE: f64 = 0.02;

/// The prefix of the names of shares of I/Os by queue depth.
pub(super) const LEVEL: &str = "iodepth_level ";

/// Whether several jobs are reported as one (`group_reporting`): under the name of the first, in
/// JSON with the options of the last. The name is among these only where a command line gave it:
/// for a job of a file, if it alone is reported of its group, the figures tell.
pub(super) fn is_of_several(result: &ToolResult, job: u32) -> bool {
    let name = result.fact(Some(job), "jobname");
    let mut own = result.options.iter();
    let own = own.find(|option| option.job == Some(job) && option.name == "name");
    let is_other = own
        .zip(name)
        .is_some_and(|(own, name)| name.value.to_string() != own.value);
    let is_of_file = own.is_none() && !result.options.is_empty();
    is_other
        || result.fact(Some(job), SEVERAL_JOBS).is_some()
        || (is_of_file && is_alone(result, job) && is_unlike_its_options(result, job))
}

/// Whether no other job of a job's group is reported.
fn is_alone(result: &ToolResult, job: u32) -> bool {
    let group = result.fact(Some(job), "groupid").map(|fact| &fact.value);
    let groups = result.facts.iter().filter(|fact| fact.name == "groupid");
    groups.filter(|fact| Some(&fact.value) == group).count() == 1
}

/// Whether a job did what the options beside it exclude: other operations, requests of another
/// size, or more of them at a time.
fn is_unlike_its_options(result: &ToolResult, job: u32) -> bool {
    let is_traced = text(result, job, "read_iolog").is_some();
    let depth = text(result, job, "iodepth").map_or(Some(1), |depth| depth.parse().ok());
    let level = deepest_level(result, job).zip(depth);
    let is_deeper = level.is_some_and(|(level, depth)| level > depth);
    let mut parts = result.parts.iter().filter(|part| part.job == job);
    let is_unlike =
        |part: &Part| other_size(result, part).is_some() || other_operation(result, part).is_some();
    !is_traced && (is_deeper || parts.any(is_unlike))
}

/// The requested size of all of a part's requests.
fn asked_size(result: &ToolResult, part: &Part) -> Option<u64> {
    let option = |name| text(result, part.job, name);
    let varies = [
        "bsrange",
        "blocksize_range",
        "bssplit",
        "bs_unaligned",
        "bs_is_seq_rand",
        "kb_base",
    ];
    let many = option("num_range").is_some() && part.operation == Operation::Trim;
    if many || varies.iter().any(|name| option(name).is_some()) {
        return None;
    }
    if result.options.is_empty() {
        return part.block_size_bytes;
    }
    let named = option("bs").or_else(|| option("blocksize"));
    let place = match part.operation {
        Operation::Write => 1,
        Operation::Trim => 2,
        _ => 0,
    };
    whole(of_three(&named.unwrap_or_else(|| "4k".to_owned()), place)?)
}

/// Describes requests of another size than the requested one, but for short ones.
pub(super) fn other_size(result: &ToolResult, part: &Part) -> Option<String> {
    let is_short = |name| {
        let count = part.fact(name).and_then(|fact| fact.value.number());
        count.is_some_and(|count| count > 0.0)
    };
    let (bytes, requests) = (part.total_bytes?, part.total_ios?);
    let moves = matches!(
        part.operation,
        Operation::Read | Operation::Write | Operation::Trim
    );
    if !moves || is_short("short_ios") || is_short("drop_ios") {
        return None;
    }
    let size = asked_size(result, part)?;
    let product = size as f64 * requests as f64;
    let depth = text(result, part.job, "iodepth").and_then(|depth| depth.parse::<f64>().ok());
    let under_way = depth.unwrap_or(1.0) * f64::from(clones(result, part.job)) * size as f64;
    let step = part
        .fact("total_bytes-step")
        .and_then(|fact| fact.value.number());
    let slack = TOLERANCE * product + under_way + step.unwrap_or(1024.0);
    // With `kb_base=1000` the units of the text differ.
    let is_unit = [1.024, 1.048_576, 1.073_741_824]
        .iter()
        .any(|unit| !differ(bytes as f64, product * unit, 0.01));
    ((bytes as f64 - product).abs() > slack && !(result.options.is_empty() && is_unit)).then(|| {
        format!(
            "{} of {size} bytes, {requests} of them, are {product} bytes and not {bytes}",
            part.operation
        )
    })
}

/// Describes an operation that the job's pattern does not have.
pub(super) fn other_operation(result: &ToolResult, part: &Part) -> Option<String> {
    let option = |name| text(result, part.job, name);
    let pattern = option("rw")?;
    let only = match pattern.split([':', ',']).next()? {
        "read" | "randread" => Operation::Write,
        "write" | "randwrite" => Operation::Read,
        _ => return None,
    };
    let is_told = !result.options.is_empty();
    let verifies = ["verify", "do_verify", "experimental_verify"];
    let verifies = verifies.iter().any(|name| option(name).is_some());
    let may = !is_told || verifies;
    (part.operation == only && !may)
        .then(|| format!("rw={pattern}, and yet there is a {}", part.operation))
}

/// The greatest depth that a job had, where its option is unknown: each of fio's levels stands for
/// all depths from it to the next.
pub(super) fn deepest_level(result: &ToolResult, job: u32) -> Option<u32> {
    let own = result.facts.iter().filter(|fact| fact.job == Some(job));
    let levels = own.filter_map(|fact| fact.name.strip_prefix(LEVEL));
    levels
        .filter_map(|level| level.trim_start_matches(">=").parse().ok())
        .max()
}
