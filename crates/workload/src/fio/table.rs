//! All options of fio 2.1 to 3.4x: their spellings, their effects on a machine, and their treatment
//! in the model.
//!
//! The ones that the model honours are in `modelled.rs`, the others in `groups.rs`; here are
//! the queries for all of them, and their classes, by which some may not be given by files
//! without permission ([`Class`]).

use super::class::Class;
use super::groups::{Group, HARMLESS, NOT_MODELLED, WITHOUT_EFFECT};
use super::modelled;
use std::collections::HashMap;
use std::sync::LazyLock;

/// The treatment of an option in the model.
#[derive(Debug, Clone, Copy)]
pub(super) enum Rule {
    /// The option changes the job as fio's does.
    Modelled(modelled::Setter),
    /// The option has no effect here; the reason is noted.
    WithoutEffect(&'static str),
    /// The option would change the result, for this reason; it is refused unless the value is fio's
    /// default, see [`harmless`].
    NotModelled(&'static str),
}

/// The treatment of an option in the model, for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Honoured {
    /// The option works as in fio.
    Yes,
    /// The option has no effect in the model, for this reason.
    NoEffect(&'static str),
    /// The model refuses the option, for this reason; real benches run it.
    No(&'static str),
}

/// One option of fio.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OptionFacts {
    /// fio's name and other spellings.
    pub names: Vec<&'static str>,
    /// The effect that it can have on the machine.
    pub class: Class,
    /// The treatment in the model.
    pub honoured: Honoured,
}

/// The kind of an option's value, for comparing two spellings of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// A time; without a unit it is in seconds.
    Time,
    /// A size, a number, or words.
    Other,
}

/// All options, the modelled ones first, in the order of the tables: the spellings, with `|`
/// between them, and the treatment.
fn rules() -> impl Iterator<Item = (&'static str, Rule)> {
    type OfReason = fn(&'static str) -> Rule;
    let grouped = |groups: &'static [Group], rule: OfReason| {
        let options = groups
            .iter()
            .map(|(reason, names)| (reason, names.split(' ')));
        options.flat_map(move |(reason, names)| names.map(move |names| (names, rule(reason))))
    };
    let modelled = modelled::options().map(|&(names, set)| (names, Rule::Modelled(set)));
    modelled
        .chain(grouped(WITHOUT_EFFECT, Rule::WithoutEffect))
        .chain(grouped(NOT_MODELLED, Rule::NotModelled))
}

/// The entry of an option: fio's own name, its treatment, and its class unless the
/// value changes that.
type Known = (&'static str, Rule, Class);

/// All options, by each of their spellings. Each start of the program looks up some ten thousand.
static KNOWN: LazyLock<HashMap<&'static str, Known>> = LazyLock::new(|| {
    let spellings = rules().flat_map(|(names, rule)| {
        let own = names.split('|').next().unwrap_or(names);
        let guarded = GUARDED.iter().find(|(_, guarded)| lists(guarded, own));
        let class = guarded.map_or(Class::Load, |&(class, _)| class);
        names.split('|').map(move |name| (name, (own, rule, class)))
    });
    spellings.collect()
});

/// All options, the modelled ones first, in the order of the tables.
#[must_use]
pub fn fio_options() -> Vec<OptionFacts> {
    let facts = |(names, rule): (&'static str, Rule)| {
        let names: Vec<&str> = names.split('|').collect();
        OptionFacts {
            class: class_of_name(names[0]),
            names,
            honoured: match rule {
                Rule::Modelled(_) => Honoured::Yes,
                Rule::WithoutEffect(reason) => Honoured::NoEffect(reason),
                Rule::NotModelled(reason) => Honoured::No(reason),
            },
        }
    };
    rules().map(facts).collect()
}

/// fio's own name of an option in any of its spellings, with `-` or `_`; the text itself where fio
/// has no such option.
#[must_use]
pub fn canonical_name(name: &str) -> String {
    let name = name.trim().replace('-', "_");
    match KNOWN.get(name.as_str()) {
        Some(&(own, ..)) => own.to_owned(),
        None => name,
    }
}

/// The kind of an option's value.
#[must_use]
pub fn unit(name: &str) -> Unit {
    if TIMES.contains(&canonical_name(name).as_str()) {
        Unit::Time
    } else {
        Unit::Other
    }
}

/// Whether `name` is an option of the fio program itself, which is beside job options on a
/// command line only.
#[must_use]
pub fn is_program_option(name: &str) -> bool {
    lists(PROGRAM_OPTIONS, &name.replace('_', "-"))
}

/// Whether an option only shapes the load, whatever its value.
#[must_use]
pub fn shapes_load(name: &str) -> bool {
    class_of_name(&canonical_name(name)) == Class::Load
}

/// The rule for an option, by any of its names.
pub(super) fn rule(name: &str) -> Option<Rule> {
    KNOWN.get(name).map(|&(_, rule, _)| rule)
}

/// The values with which an option that is not modelled has no effect, so that it is accepted.
pub(super) fn harmless(name: &str) -> &'static [&'static str] {
    let values = HARMLESS.iter().find(|(option, _)| *option == name);
    values.map_or(&[][..], |(_, values)| values)
}

/// The class of an option, by any of its names, with this value.
pub(super) fn class(name: &str, value: Option<&str>) -> Class {
    class_of(&canonical_name(name), value.unwrap_or_default())
}

/// Whether an option names the target of the job, which raidlab gives.
pub(super) fn is_target(name: &str) -> bool {
    lists(
        "filename directory filename_format opendir uri nfs_url libblkio_path",
        &canonical_name(name),
    )
}

/// The class of an option with this value; some options are harmful only with some values.
fn class_of(name: &str, value: &str) -> Class {
    match name {
        "filename" | "directory" if is_ours(value) => Class::Load,
        // In a folder fio names a job's file after the job, whatever that leads to, and takes a
        // device of that name as it is.
        "name" if value.contains('/') => Class::Place,
        "ioengine" => engine_class(value),
        // `mmap:/file` keeps fio's buffers in a file of that name.
        "iomem" if value.contains(':') || value.contains('/') => Class::Elsewhere,
        // A pattern in single quotes is a file's contents.
        "buffer_pattern" | "verify_pattern" if value.contains('\'') => Class::Place,
        _ if harmless(name).contains(&value) => Class::Load,
        _ => class_of_name(name),
    }
}

/// The class of an option, whatever its value.
fn class_of_name(name: &str) -> Class {
    KNOWN.get(name).map_or(Class::Load, |&(.., class)| class)
}

/// Whether a place is the target that raidlab gives, or inside it.
fn is_ours(value: &str) -> bool {
    ["{target}", "{file}"].iter().any(|ours| {
        let Some(rest) = value.strip_prefix(ours) else {
            return false;
        };
        let stays = rest.split('/').all(|part| part != "..");
        stays && (rest.is_empty() || rest.starts_with('/')) && !rest.contains(':')
    })
}

/// The class of an engine: those that move data between fio and the target only shape the load; fio
/// also takes a path for an engine, and loads its code. A plain name that fio does not know is no
/// engine on any bench.
fn engine_class(value: &str) -> Class {
    if value.contains([':', '/', '.']) || value == "exec" {
        Class::Runs
    } else if lists(REMOTE_ENGINES, value) {
        Class::Place
    } else {
        Class::Load
    }
}

/// Engines that reach other machines, or storage that fio is given by name.
const REMOTE_ENGINES: &str = "net netsplice rdma rbd rados http nfs nbd gfapi gfapi_async libhdfs \
     libiscsi ime_psync ime_psyncv ime_aio dfs libblkio";

/// Options that do more than shape the load.
const GUARDED: &[(Class, &str)] = &[
    (
        Class::Place,
        "filename directory filename_format opendir allow_mounted_write read_iolog \
         merge_blktrace_file replay_redirect verify_state_load hostname interface port listen \
         donorname namenode clustername rbdname clientname conf pool cont volume brick \
         hdfsdirectory http_host http_user http_pass http_s3_key http_s3_keyid \
         http_s3_security_token http_swift_auth_token uri nfs_url libblkio_path \
         libblkio_pre_connect_props xnvme_dev_nsid dp_scheme",
    ),
    (
        Class::Elsewhere,
        "write_bw_log write_lat_log write_hist_log write_iops_log write_iolog verify_dump \
         verify_state_save ioscheduler cgroup cgroup_weight cgroup_nodelete lockmem",
    ),
    (
        Class::Runs,
        "exec_prerun exec_postrun program arguments std_redirect uid gid profile",
    ),
];

/// Options whose values are times, a plain number in seconds.
const TIMES: &[&str] = &[
    "runtime",
    "ramp_time",
    "startdelay",
    "steadystate_duration",
    "steadystate_ramp_time",
];

/// The option whose name is most like `name`, if any is close: at most one
/// third of the letters (or one) may be wrong, missing or swapped. Capital letters count as
/// small ones.
pub(super) fn nearest(name: &str) -> Option<&'static str> {
    let name = name.to_lowercase();
    let limit = (name.chars().count() / 3).max(1);
    names()
        .map(|known| (strsim::damerau_levenshtein(&name, known), known))
        .filter(|&(distance, _)| distance <= limit)
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, known)| known)
}

/// All spellings of all options, the modelled ones first.
fn names() -> impl Iterator<Item = &'static str> {
    rules().flat_map(|(names, _)| names.split('|'))
}

/// Whether `name` is one of `names`, which are separated by spaces; spellings
/// of one option by `|`.
fn lists(names: &str, name: &str) -> bool {
    names.split([' ', '|']).any(|listed| listed == name)
}

const PROGRAM_OPTIONS: &str = "alloc-size append-terse aux-path bandwidth-log client cmdhelp \
     cpuclock-test crctest daemonize debug enghelp eta eta-interval eta-newline help idle-prof \
     inflate-log latency-log max-jobs memcpytest merge-blktrace-only minimal output output-format \
     parse-only readonly remote-config section server showcmd status-interval terse-version \
     trigger trigger-file trigger-remote trigger-timeout version warnings-fatal";

#[cfg(test)]
mod tests {
    use super::{GUARDED, HARMLESS, PROGRAM_OPTIONS, Rule, canonical_name, names, nearest, rule};
    use std::collections::BTreeSet;

    #[test]
    fn each_name_stands_once() {
        let all: Vec<&str> = names().chain(PROGRAM_OPTIONS.split(' ')).collect();
        let different: BTreeSet<&str> = all.iter().copied().collect();
        assert_eq!(all.len(), different.len());
    }

    #[test]
    fn what_is_guarded_is_an_option_by_its_own_name() {
        for name in GUARDED.iter().flat_map(|(_, names)| names.split(' ')) {
            assert!(rule(name).is_some(), "{name}");
            assert_eq!(canonical_name(name), name);
        }
    }

    #[test]
    fn harmless_values_belong_to_refused_options() {
        for (name, _) in HARMLESS {
            assert!(matches!(rule(name), Some(Rule::NotModelled(_))), "{name}");
        }
    }

    #[test]
    fn a_slip_of_the_pen_is_recognised() {
        let cases = [
            ("rwmixraed", Some("rwmixread")),
            ("block_size", Some("blocksize")),
            ("iodpeth", Some("iodepth")),
            ("IODEPTH", Some("iodepth")),
            ("zzzzzzzz", None),
        ];
        for (name, expected) in cases {
            assert_eq!(nearest(name), expected, "{name}");
        }
    }
}
