//! `gmirror-2015.log`, `gflash-2015.log` and `md-2015.log` are excerpts of `test_raid1/*.log` of
//! geomflash/geomflash on GitHub, commit 53edd63; `fio-3.33.txt` is this
//! project's own run.

use super::{find_all, lines, parse};
use crate::result::LatencyKind;
use crate::{Operation, ParseError};

const MD: &str = include_str!("../data/md-2015.log");
const GMIRROR: &str = include_str!("../data/gmirror-2015.log");
const GFLASH: &str = include_str!("../data/gflash-2015.log");
const NEW: &str = include_str!("../data/fio-3.33.txt");

#[test]
fn runs_are_found_among_other_things() {
    let runs = find_all(GMIRROR);
    let facts: Vec<_> = runs
        .iter()
        .map(|(range, run)| {
            let part = &run.parts[0];
            (
                range.clone(),
                run.version.as_str(),
                part.label.as_str(),
                part.total_ios,
            )
        })
        .collect();
    let lines: Vec<&str> = GMIRROR.lines().collect();
    assert_eq!(facts.len(), 2);
    for (range, version, label, ios) in facts {
        assert_eq!(version, "2.1.9");
        assert!(lines[range.start].starts_with(label), "{label}");
        assert!(lines[range.end - 1].trim_start().starts_with("READ: "));
        // fio 2.1 with gtod_reduce looks at its clock on every 64th request.
        assert_eq!((ios.expect("a count") + 2 * 32) % 64, 0);
    }
}

#[test]
fn statistics_of_an_array_do_not_belong_to_a_run() {
    let runs = find_all(GFLASH);
    let ends: Vec<_> = runs.iter().map(|(range, _)| range.end).collect();
    let lines: Vec<&str> = GFLASH.lines().collect();
    assert_eq!(ends.len(), 2);
    for end in ends {
        assert!(
            lines[end - 1].starts_with("   READ: io="),
            "{}",
            lines[end - 1]
        );
    }
    assert!(runs.iter().all(|(_, run)| run.messages.is_empty()));
}

#[test]
fn an_old_result_is_exact() {
    let runs = find_all(MD);
    let run = &runs[0].1;
    let part = &run.parts[0];
    assert_eq!(
        (part.label.as_str(), part.operation),
        ("1_1rw4k", Operation::Write)
    );
    assert_eq!(part.total_ios, Some(10814));
    assert_eq!(part.total_bytes, Some(10814 * 4096));
    assert_eq!(part.runtime_ns, Some(60_057_000_000));
    // fio printed 737535B/s.
    assert_eq!(part.bytes_per_second.map(f64::floor), Some(737_535.0));
    assert_eq!(
        part.cpu_percent.map(|cpu| (cpu * 100.0).round()),
        Some(102.0)
    );
    let names: Vec<_> = run.disks.iter().map(|disk| disk.name.as_str()).collect();
    assert_eq!(names, ["md1", "sdc", "sdd"]);
    let members = run.disks[0].members.expect("an array");
    assert_eq!(
        (members.write_ios, members.util_percent),
        (Some(10815), Some(68.71))
    );
    assert_eq!(run.disks[2].own.in_queue_ms, Some(39596));

    // `io=1024.0GB` has four digits; the requests tell the rest.
    let big = &runs[1].1.parts[0];
    assert_eq!(big.total_bytes, Some(1 << 40));
    let mixed = &runs[2].1;
    let kinds: Vec<_> = mixed
        .parts
        .iter()
        .map(|part| (part.operation, part.total_ios))
        .collect();
    assert_eq!(
        kinds,
        [
            (Operation::Read, Some(9633)),
            (Operation::Write, Some(4701))
        ]
    );
}

#[test]
fn a_new_result_has_latencies_and_clones() {
    let result = parse(NEW).expect("fio's own output");
    assert_eq!(result.version, "3.33");
    let jobs: Vec<_> = result
        .parts
        .iter()
        .map(|part| {
            (
                part.job,
                part.label.as_str(),
                part.operation,
                part.total_bytes,
            )
        })
        .collect();
    assert_eq!(
        jobs,
        [
            (0, "h", Operation::Read, Some(1984 << 10)),
            (0, "h", Operation::Write, Some(2112 << 10)),
            (1, "h", Operation::Read, Some(1944 << 10)),
            (1, "h", Operation::Write, Some(2152 << 10)),
            (2, "h2", Operation::Write, Some(4 << 20)),
            (2, "h2", Operation::Sync, None),
        ]
    );
    let read = &result.parts[0];
    assert_eq!(read.runtime_ns, Some(30_000_000));
    let latency = read.latency().expect("timed");
    assert_eq!(latency.kind, LatencyKind::Completion);
    assert_eq!(
        (latency.min_ns, latency.max_ns),
        (Some(821), Some(3_292_800))
    );
    assert_eq!(latency.percentiles.len(), 17);
    assert_eq!(latency.percentiles[16], (99.99, 3_293_184));
    let sync = &result.parts[5];
    assert_eq!(sync.total_ios, Some(15));
    let latency = sync.latency().expect("timed");
    assert_eq!(
        (latency.min_ns, latency.max_ns),
        (Some(518_000), Some(32_196_000))
    );
    assert!(result.fact(Some(0), "run status read").is_some());
}

#[test]
fn the_newest_version_is_read() {
    let result = parse(include_str!("../data/fio-3.42.txt")).expect("fio's own output");
    assert_eq!(result.version, "3.42");
    let bytes: Vec<_> = result.parts.iter().map(|part| part.total_bytes).collect();
    assert_eq!(bytes, [Some(982 << 12), Some(1066 << 12), Some(4 << 20)]);
    let jobs = result.fact(Some(0), "jobs").expect("the clones");
    assert_eq!(jobs.value.number(), Some(2.0));
    assert_eq!(result.messages, [""; 0]);
}

#[test]
fn lines_of_other_versions_are_read() {
    let direction = |text| lines::direction(text).expect(text).expect(text);
    let old = direction("read : io=8192.0MB, bw=170165KB/s, iops=1329, runt= 49297msec");
    assert_eq!(
        old.bytes.map(|(bytes, _)| bytes),
        Some(8192.0 * 1_048_576.0)
    );
    assert_eq!(old.rate, Some(170_165.0 * 1024.0));
    let new = direction("write: IOPS=25.1k, BW=98.2MiB/s (103MB/s)(2112KiB/21msec); 0 zone resets");
    assert_eq!(new.iops, Some(25_100.0));
    assert_eq!(new.bytes.map(|(bytes, _)| bytes), Some(2112.0 * 1024.0));
    let disk = lines::disk(
        "  nvme0n1: ios=256907/65, sectors=495587632/840, merge=8/24, ticks=328812567/42586, in_queue=328869901, util=88.04%",
    )
    .expect("a disk of fio 3.36");
    assert_eq!(disk.own.read_sectors, Some(495_587_632));
    let latency =
        lines::latency("clat (nsec): min=801, max=1015.1k, avg=200837.48, stdev=44069.44")
            .expect("a latency");
    assert_eq!(latency.and_then(|latency| latency.max_ns), Some(1_015_100));
    let header = "a: b: (groupid=0, jobs=1): err=28 (file:io_u.c:1787, func=io_u error, error=No space left on device): pid=1: Mon";
    let header = lines::job_header(header).expect("a header");
    assert_eq!((header.label, header.group), ("a: b", Some(0)));
    assert_eq!((header.jobs, header.error), (Some(1), Some(28)));
    assert_eq!(lines::version("fio-2.1.11"), Some(String::from("2.1.11")));
    assert_eq!(lines::version("fio-2.1.11 is old"), None);
}

/// fio 3.33 with `--bs=64k --size=8m --kb_base=1000`, and with blocks of 100000 bytes.
#[test]
fn units_of_powers_of_1000_are_read_as_such() {
    let direction = "read: IOPS=1662, BW=109MB/s (104MiB/s)(8389kB/77msec)";
    let direction = lines::direction(direction)
        .expect("a line")
        .expect("a direction");
    assert_eq!(direction.bytes, Some((8_389_000.0, 1000.0)));
    assert_eq!(direction.rate, Some(109e6));
    let size = |size: &str| {
        let sizes = format!("(R) {size}-{size}, (W) {size}-{size}, (T) {size}-{size}");
        let line = format!("a: (g=0): rw=read, bs={sizes}, ioengine=psync, iodepth=1");
        let definition = lines::definition(&line).expect("a definition");
        definition.block_size(Operation::Read)
    };
    assert_eq!(size("65.5kB"), Some(65_536));
    assert_eq!(size("100kB"), Some(100_000));
    assert_eq!(size("64.0KiB"), Some(65_536));
    assert_eq!(size("97.7KiB"), None);
}

#[test]
fn a_broken_line_is_named() {
    let broken = NEW.replacen("(1984KiB/30msec)", "(1984KiB/30)", 1);
    let error = parse(&broken).expect_err("no unit");
    assert!(matches!(error, ParseError::Line { line: 8, .. }), "{error}");
    assert_eq!(find_all(&broken)[0].1.messages.len(), 1);
    assert!(matches!(
        parse("no fio here"),
        Err(ParseError::NoOutput { .. })
    ));
}

/// fio 3.33 with `group_reporting`: one result for a job of reads and one of writes.
#[test]
fn a_result_of_several_jobs_has_no_size_of_the_first() {
    let sizes = |size: &str| format!("(R) {size}-{size}, (W) {size}-{size}, (T) {size}-{size}");
    let text = format!(
        "a: (g=0): rw=randread, bs={}, ioengine=psync, iodepth=1\n\
         b: (g=0): rw=write, bs={}, ioengine=psync, iodepth=1\nfio-3.33\n\
         a: (groupid=0, jobs=4): err= 0: pid=1: Tue Dec  1 04:21:29 2026\n  \
         read: IOPS=410k, BW=1600MiB/s (1678MB/s)(24.0MiB/15msec)\n  \
         write: IOPS=42.7k, BW=2667MiB/s (2796MB/s)(8192KiB/3msec)\n     \
         issued rwts: total=6144,128,0,0 short=0,0,0,0 dropped=0,0,0,0\n",
        sizes("4096B"),
        sizes("64.0KiB")
    );
    let result = parse(&text).expect("fio's own form");
    let parts = result.parts.iter();
    let sizes: Vec<_> = parts
        .map(|part| (part.total_bytes, part.block_size_bytes))
        .collect();
    assert_eq!(sizes, [(Some(24 << 20), Some(4096)), (Some(8 << 20), None)]);
    let title = result.tool.title(&result);
    assert_eq!(
        title.title,
        "reads and writes, queue depth 4 or more of 4 jobs"
    );
    assert_eq!(title.class, "mixed");
}

/// Wherever a text is cut, the jobs before that stay, and no number is a part of one.
#[test]
fn a_line_that_is_cut_off_is_no_result() {
    for whole in [NEW, MD] {
        let all = parse(whole).expect("fio's own output").parts;
        let job = "(groupid=";
        let mut jobs = whole.match_indices(job);
        let second = jobs.nth(1).expect("a second job").0;
        for end in (second..whole.len()).step_by(2) {
            let cut = parse(&whole[..end]).unwrap_or_else(|error| panic!("{end}: {error}"));
            for (part, told) in cut.parts.iter().zip(&all) {
                let numbers = |part: &super::Part| {
                    let mean = part.latencies.iter().map(|latency| latency.mean_ns);
                    let mean: Vec<_> = mean.flatten().collect();
                    (part.total_ios, part.runtime_ns, mean)
                };
                let ((ios, time, means), of_all) = (numbers(part), numbers(told));
                assert!(ios.is_none() || ios == of_all.0, "{end}: {ios:?}");
                assert!(time.is_none() || time == of_all.1, "{end}: {time:?}");
                assert!(of_all.2.starts_with(&means), "{end}: {means:?}");
            }
        }
    }
}

#[test]
fn a_run_that_failed_has_no_parts() {
    let text = "x: (g=0): rw=read, bs=4K-4K/4K-4K/4K-4K, ioengine=sync, iodepth=1\nfio-2.1.11\nStarting 1 process\n\nfio: no such device\n";
    let runs = find_all(text);
    assert_eq!(runs.len(), 1);
    assert_eq!(runs[0].0.start, 0);
    assert!(runs[0].1.parts.is_empty());
    assert!(parse(text).is_err());
}

/// As fio 3.33 prints it with `status-interval=1`: the counts since the start, each second.
#[test]
fn of_reports_that_come_again_the_last_counts() {
    let report = |name: &str, process: u32, kib: u32, ms: u32| {
        format!(
            "{name}: (groupid=0, jobs=1): err= 0: pid={process}: Thu Nov 26 15:33:48 2026\n  \
             read: IOPS=200, BW=800KiB/s (820kB/s)({kib}KiB/{ms}msec)\n"
        )
    };
    let both = |kib: u32, ms: u32| report("j", 27, kib, ms) + &report("j", 28, kib, ms);
    let text = format!(
        "fio-3.33\n{}\n{}{}",
        both(656, 819),
        both(1456, 1819),
        both(2400, 3002)
    );
    let result = parse(&text).expect("fio's own form");
    let bytes: Vec<_> = result.parts.iter().map(|part| part.total_bytes).collect();
    assert_eq!(bytes, [Some(2400 << 10); 2]);
    assert_eq!(result.parts[1].job, 1);
}

/// As fio 3.33 prints it with `--client=localhost`, shortened.
#[test]
fn clients_are_read_without_their_sum() {
    let job = |name: &str, process: u32| {
        format!(
            "{name}: (groupid=0, jobs=1): err= 0: pid={process}: Tue Dec  1 04:21:29 2026\n  \
             read: IOPS=14.9k, BW=58.4MiB/s (61.2MB/s)(8192KiB/137msec)\n     \
             issued rwts: total=2048,0,0,0 short=0,0,0,0 dropped=0,0,0,0\n"
        )
    };
    let text = job("cj", 29931) + &job("All clients", 0);
    let result = parse(&text).expect("fio's own form");
    assert_eq!(result.parts.len(), 1);
    assert_eq!(result.parts[0].total_ios, Some(2048));
    assert_eq!(result.messages, ["the sum over all clients is left out"]);
}
