//! The command `raidlab explain`: it shows where the time of a job's requests goes.

use crate::failure::Failure;
use crate::output;
use crate::run::terminal::Terminal;
use clap::Args;
use raidlab_runs::notes::STORE;
use raidlab_runs::{ExplainedJob, explain};
use raidlab_units::distinct;
use serde_json::{Map, Value, json};
use std::fmt::Write;
use std::path::PathBuf;

/// Arguments of `raidlab explain`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The run's name, or `latest` for the one that the store took last.
    run: String,

    /// The name of the job.
    job: String,

    /// Only this subject; may be repeated. Default: all subjects that do the job.
    #[arg(long = "subject", value_name = "NAME")]
    subjects: Vec<String>,

    /// Print one JSON object for each subject.
    #[arg(long)]
    json: bool,

    /// The file that keeps the run.
    #[arg(long, value_name = "FILE", default_value = STORE)]
    store: PathBuf,
}

/// Explains where the time of a job's requests went.
///
/// # Errors
/// When there is no such run or job, or it cannot be repeated.
pub fn command(arguments: &Arguments) -> Result<(), Failure> {
    let (run, job) = (&arguments.run, &arguments.job);
    let all = explain(&arguments.store, run, job, &arguments.subjects, &Terminal)?;
    let text = if arguments.json {
        let lines = all.iter().map(|one| output::json(&line(one)));
        lines.collect::<Result<_, _>>()?
    } else {
        tables(&all)
    };
    output::print(&text)
}

/// The facts of a kind as numbers, each with the part of its name that stands between
/// `begin` and `end`.
fn named<'a>(
    one: &'a ExplainedJob,
    begin: &'a str,
    end: &'a str,
) -> impl Iterator<Item = (&'a str, f64)> {
    one.facts.iter().filter_map(move |fact| {
        let name = fact.name.strip_prefix(begin)?.strip_suffix(end)?;
        Some((name, fact.value.parse().ok()?))
    })
}

fn line(one: &ExplainedJob) -> Value {
    let map = |begin, end| -> Map<String, Value> {
        named(one, begin, end)
            .map(|(name, value)| (name.to_owned(), json!(value)))
            .collect()
    };
    let row = &one.rows[0];
    let locks: Map<String, Value> = named(one, "lock.", ".passes")
        .map(|(name, passes)| {
            let part = |what: &str| one.number(&format!("lock.{name}.{what}"));
            let lock = json!({
                "passes": passes,
                "contended": part("contended"),
                "wait_ns": part("wait_ns"),
                "hold_ns": part("hold_ns"),
            });
            (name.to_owned(), lock)
        })
        .collect();
    let mut object = json!({
        "subject": row.subject,
        "job": row.job,
        "requests": one.rows.iter().map(|row| row.total_ios).sum::<u64>(),
        "runtime_ns": row.runtime_ns,
        "time_ns": map("time.", ".ns"),
    });
    if let (Some(busy), Some(fields)) = (one.number("cpu.busy_percent"), object.as_object_mut()) {
        fields.insert("cpu_busy_percent".to_owned(), json!(busy));
        fields.insert(
            "cpu_percent".to_owned(),
            Value::from(map("cpu.for.", ".percent")),
        );
        fields.insert(
            "thread_percent".to_owned(),
            Value::from(map("cpu.thread.", ".percent")),
        );
        fields.insert("locks".to_owned(), Value::from(locks));
    }
    object
}

/// The length of the longest bar in characters, beside the numbers of these subjects: 20, or what
/// the terminal has left for each; no bars at all where that is too little to compare.
fn bar_width(all: &[ExplainedJob], terminal: Option<u16>) -> usize {
    // A place's name, and beside each subject's name its percent and the gaps.
    let names = all.iter().map(|one| one.rows[0].subject.chars().count());
    let taken = 16 + names.map(|name| name.max(8) + 12).sum::<usize>();
    let left = terminal
        .map_or(usize::MAX, usize::from)
        .saturating_sub(taken);
    match left / all.len().max(1) {
        0..6 => 0,
        width => width.min(20),
    }
}

/// Draws a bar as long as this share of `width` characters, to an eighth of one; in whole ones of
/// ASCII where it must be plain.
// A share of a few characters.
fn bar(share: f64, width: usize, plain: bool) -> String {
    const PARTS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (share.clamp(0.0, 1.0) * 8.0 * width as f64).round() as usize;
    if plain {
        return "#".repeat((eighths + 4) / 8);
    }
    "█".repeat(eighths / 8) + PARTS[eighths % 8]
}

/// A chart of places, subject by subject, and the uses of the cores.
fn tables(all: &[ExplainedJob]) -> String {
    let row = &all[0].rows[0];
    let mut text = format!(
        "Job {}: {}\nWhere the time of a mean request goes, microseconds\n\n",
        row.job, row.job_title
    );
    let style = output::style();
    let bars = bar_width(all, style.width);
    let numbers: Vec<usize> = (0..all.len())
        .flat_map(|at| [3 * at + 1, 3 * at + 2])
        .collect();
    let mut head = vec!["place".to_owned()];
    for one in all {
        head.extend([one.rows[0].subject.clone(), "%".to_owned(), String::new()]);
    }
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    let total = |one: &ExplainedJob| named(one, "time.", ".ns").map(|it| it.1).sum::<f64>();
    let mut rows = Vec::new();
    for place in in_order(all, "time.", ".ns") {
        let mut row = vec![place.clone()];
        for one in all {
            let time = one.number(&format!("time.{place}.ns")).unwrap_or(0.0);
            let share = time / total(one).max(1.0);
            row.extend([
                format!("{:.1}", time / 1e3),
                format!("{:.0}", 100.0 * share),
                bar(share, bars, style.plain),
            ]);
        }
        rows.push(row);
    }
    let mut sum = vec!["all".to_owned()];
    for one in all {
        let all = format!("{:.1}", total(one) / 1e3);
        sum.extend([all, "100".to_owned(), String::new()]);
    }
    rows.push(sum);
    text += &output::table(&head, &numbers, rows);
    for one in all {
        text += &processor(one);
    }
    text
}

/// The names of facts of a kind, in the order in which they come.
fn in_order(all: &[ExplainedJob], begin: &str, end: &str) -> Vec<String> {
    let all = all.iter().flat_map(|one| named(one, begin, end));
    distinct(all.map(|(name, _)| name.to_owned()))
}

/// The purposes that cores were busy with, most first, as shares of the time in which
/// they were busy.
fn purposes(one: &ExplainedJob) -> String {
    let mut parts: Vec<(&str, f64)> = named(one, "cpu.for.", ".percent").collect();
    parts.sort_by(|one, other| other.1.total_cmp(&one.1));
    let all = parts.iter().map(|part| part.1).sum::<f64>().max(1e-9);
    let shares = parts
        .iter()
        .map(|(name, percent)| (name, 100.0 * percent / all));
    let shares: Vec<String> = shares
        .filter(|share| share.1 >= 0.5)
        .map(|(name, share)| format!("{name} {share:.0}"))
        .collect();
    format!("\n  percent of what they did: {}\n", shares.join(", "))
}

/// The names that stand for several locks: RAID 5's eight, and one of each disk.
const SEVERAL_LOCKS: [&str; 3] = ["hash_locks", "scheduler", "vq_lock"];

/// The share of the time for which a lock was held, in words. For several locks it is a sum, which
/// may be more than all of the time.
fn held(name: &str, share: f64) -> String {
    let together = match SEVERAL_LOCKS.contains(&name) {
        true => " by all of them together",
        false => "",
    };
    format!("held {:.0} % of the time{together}", 100.0 * share)
}

/// The uses of the cores, in lines; nothing where no processor is modelled.
fn processor(one: &ExplainedJob) -> String {
    let Some(busy) = one.number("cpu.busy_percent") else {
        return String::new();
    };
    let row = &one.rows[0];
    let of = |name: &str| one.number(name).unwrap_or(0.0);
    let mut text = format!(
        "\n{}: {busy:.1} % of all cores; percent of one core: jobs {:.0} (fio {:.0}), interrupts {:.0}",
        row.subject,
        of("cpu.user_percent") + of("cpu.system_percent"),
        of("cpu.user_percent"),
        of("cpu.interrupt_percent"),
    );
    for (name, percent) in named(one, "cpu.thread.", ".percent") {
        let _ = write!(text, ", {name} {percent:.0}");
    }
    text += &purposes(one);
    let runtime = (row.runtime_ns as f64).max(1.0);
    for (name, passes) in named(one, "lock.", ".passes") {
        let part = |what: &str| of(&format!("lock.{name}.{what}"));
        let _ = writeln!(
            text,
            "  {name}: {passes} passes, {:.0} % found it taken, {}, \
             {:.2} us of spinning for a pass",
            100.0 * part("contended") / passes.max(1.0),
            held(name, part("hold_ns") / runtime),
            part("wait_ns") / passes.max(1.0) / 1e3,
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{bar, held};

    #[test]
    fn bars_are_as_long_as_shares() {
        assert_eq!(bar(1.0, 20, false), "█".repeat(20));
        assert_eq!(bar(0.5, 4, false), "██");
        assert_eq!(bar(0.28, 4, false), "█▏");
        assert_eq!(bar(0.0, 20, false), "");
        assert_eq!(bar(0.28, 20, true), "######");
        assert_eq!(bar(0.9, 0, false), "");
        assert_eq!(bar(f64::NAN, 20, false), "");
    }

    #[test]
    fn locks_of_one_name_are_held_together() {
        assert_eq!(held("device_lock", 0.41), "held 41 % of the time");
        let several = "held 246 % of the time by all of them together";
        assert_eq!(held("scheduler", 2.46), several);
    }
}
