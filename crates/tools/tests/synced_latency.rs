//! What fio's latencies count where a job flushes between its writes: the definition
//! that the simulator's jobs have too, asked of fio itself where one is installed.
//!
//! Times depend on the disk beneath; how many rounds of a flush and a write a latency
//! takes does not.

use serde_json::Value;
use std::process::Command;

/// Writes of a job.
const WRITES: u32 = 300;

/// What a job's latencies are, in rounds: the run time for each flush.
struct Rounds {
    write: f64,
    sync: f64,
    syncs: u64,
}

/// `None` without fio, or where its engine or direct I/O is missing.
fn run(engine: &str, depth: u32, flush: &str) -> Option<Rounds> {
    let file = format!("{}/{engine}-{depth}-{flush}", env!("CARGO_TARGET_TMPDIR"));
    let output = Command::new("fio")
        .args(["--name=a", "--rw=randwrite", "--bs=4k", "--direct=1"])
        .args(["--size=8m", "--output-format=json"])
        .args([
            format!("--filename={file}"),
            format!("--ioengine={engine}"),
            format!("--iodepth={depth}"),
            format!("--{flush}=1"),
            format!("--number_ios={WRITES}"),
        ])
        .output();
    std::fs::remove_file(&file).ok();
    let output = output.ok().filter(|output| output.status.success())?;
    let text = String::from_utf8(output.stdout).expect("fio writes text");
    let json = text.find('{').map(|start| &text[start..]).expect("JSON");
    let report: Value = serde_json::from_str(json).expect("JSON");
    let job = &report["jobs"][0];
    let number = |value: &Value| value.as_f64().expect("a number");
    assert_eq!(job["write"]["total_ios"].as_u64(), Some(u64::from(WRITES)));
    // fio 3.33 prints no `total_ios` of fdatasync.
    let syncs = &job["sync"]["lat_ns"]["N"];
    let round = number(&job["write"]["runtime"]) * 1e6 / number(syncs);
    Some(Rounds {
        write: number(&job["write"]["lat_ns"]["mean"]) / round,
        sync: number(&job["sync"]["lat_ns"]["mean"]) / round,
        syncs: syncs.as_u64()?,
    })
}

/// The mean of its flushes is not asked for: fio 3.33 counts the first from a time that
/// it never set, which on a fast disk is all that is left of the mean.
#[test]
fn with_a_queue_fio_takes_notice_of_one_write_between_two_flushes() {
    for flush in ["fsync", "fdatasync"] {
        for depth in [1, 2, 8] {
            let late = f64::from(depth - 1);
            let mut seen = Vec::new();
            // A busy disk can stretch any single run; another definition is off in each.
            let holds = (0..10).any(|_| {
                // Without fio, libaio or direct I/O there is nothing to compare with.
                let Some(rounds) = run("libaio", depth, flush) else {
                    return true;
                };
                let syncs = WRITES - depth + u32::from(depth > 1);
                assert_eq!(rounds.syncs, u64::from(syncs));
                seen.push(rounds.write);
                depth == 1 || (rounds.write - late).abs() <= 0.35 * late
            });
            assert!(holds, "{flush}, depth {depth}: {seen:?}");
        }
    }
}

#[test]
fn a_synchronous_engine_s_writes_and_flushes_fill_the_time() {
    for flush in ["fsync", "fdatasync"] {
        let Some(rounds) = run("psync", 1, flush) else {
            return;
        };
        assert_eq!(rounds.syncs, u64::from(WRITES - 1));
        let together = rounds.write + rounds.sync;
        assert!((0.7..=1.01).contains(&together), "{together}");
    }
}
