//! Texts of dd on many systems. Those of GNU 9.1 (English, German, French,
//! Russian locale) and of busybox 1.35 are this project's own runs; the others
//! follow the sources of coreutils, FreeBSD, busybox and uutils, and the
//! listings of a comparison of mdadm and gmirror of 2010.

use super::{TOOL, bytes, parse};
use crate::result::Part;
use crate::{Operation, ParseError, Place};

fn only(text: &str) -> Part {
    let mut result = parse(text).expect(text);
    assert_eq!(result.parts.len(), 1, "{text}");
    result.parts.remove(0)
}

fn records(in_and_out: &str, last: &str) -> String {
    format!("{in_and_out} records in\n{in_and_out} records out\n{last}\n")
}

#[test]
fn bytes_and_seconds_are_read_in_every_form() {
    let cases = [
        // GNU 9.1 in the locales C, ru_RU, de_DE and fr_FR.
        (include_str!("data/gnu-9.1-c.txt"), 3_145_728, 0.002_242_14),
        (include_str!("data/gnu-9.1-ru.txt"), 1_572_864_000, 3.158_96),
        (include_str!("data/gnu-9.1-de.txt"), 1_572_864_000, 0.620_26),
        (
            include_str!("data/gnu-9.1-fr.txt"),
            1_572_864_000,
            0.621_725,
        ),
        // In others: the words differ, the shape does not.
        (
            include_str!("data/gnu-9.1-zh_CN.txt"),
            2_097_152_000,
            0.150_98,
        ),
        (
            include_str!("data/gnu-9.1-ko.txt"),
            2_097_152_000,
            0.191_177,
        ),
        (
            "2000+0 записів прочитано\n2000+0 записів записано\n\
             скопійовано 2097152000 байтів (2,1 GB, 2,0 GiB), 0,226162 s, 9,3 GB/s\n",
            2_097_152_000,
            0.226_162,
        ),
        // Chinese up to 8.32, as it stands in forums.
        (
            "记录了1024+0 的读入\n记录了1024+0 的写出\n\
             1073741824字节(1.1 GB，1.0 GiB)已复制，10.1234 秒，106 MB/秒\n",
            1_073_741_824,
            10.1234,
        ),
        // GNU up to 8.24.
        (
            &records(
                "262144+0",
                "1073741824 bytes (1.1 GB) copied, 45.0159 s, 23.9 MB/s",
            ),
            1_073_741_824,
            45.0159,
        ),
        // GNU from 8.25, few bytes.
        (
            &records("1+0", "1 byte copied, 0.000234679 s, 4.3 kB/s"),
            1,
            0.000_234_679,
        ),
        (
            &records("0+1", "100 bytes copied, 7.5694e-05 s, 1.3 MB/s"),
            100,
            7.5694e-5,
        ),
        // Russian translations of GNU, with a Latin and a Cyrillic c.
        (
            "262144+0 записей считано\n262144+0 записей написано\n скопировано 1073741824 байта (1,1 GB), 45,0159 c, 23,9 MB/c\n",
            1_073_741_824,
            45.0159,
        ),
        (
            "262144+0 записей получено\n262144+0 записей отправлено\n1073741824 байт (1,1 GB, 1,0 GiB) скопирован, 45,0159 s, 23,9 MB/s\n",
            1_073_741_824,
            45.0159,
        ),
        (
            "262144+0 записей считано\n262144+0 записей написано\nскопировано 1073741824 байт (1,1 GB), 45,0159 с, 23,9 MB/с\n",
            1_073_741_824,
            45.0159,
        ),
        // FreeBSD, macOS, NetBSD.
        (
            &records(
                "16384+0",
                "1073741824 bytes transferred in 21.051392 secs (51005741 bytes/sec)",
            ),
            1_073_741_824,
            21.051_392,
        ),
        // busybox with its third line.
        (
            &records(
                "5+0",
                "5242880 bytes (5.0MB) copied, 0.015309 seconds, 326.6MB/s",
            ),
            5_242_880,
            0.015_309,
        ),
        // uutils.
        (
            &records(
                "16+0",
                "8192 bytes (8.2 KB, 8 KiB) copied, 0.5 s, 16.4 KB/s",
            ),
            8192,
            0.5,
        ),
    ];
    for (text, bytes, seconds) in cases {
        let part = only(text);
        assert_eq!(part.total_bytes, Some(bytes), "{text}");
        let time = part.runtime_ns.expect(text) as f64 / 1e9;
        assert!((time - seconds).abs() < 2e-9, "{text}: {time}");
        let rate = part.bytes_per_second.expect(text);
        assert!((rate * time / bytes as f64 - 1.0).abs() < 1e-9);
    }
}

#[test]
fn a_printed_rate_that_is_wrong_is_kept() {
    let right = only(&records(
        "16384+0",
        "1073741824 bytes (1.1 GB) copied, 28.2238 s, 38.0 MB/s",
    ));
    assert_eq!(right.fact("printed-rate"), None);
    assert_eq!(right.block_size_bytes, Some(65536));
    // A listing edited by its author: 47.98 MiB/s under the name of bytes.
    let edited = only(&records(
        "1024+0",
        "1073741824 bytes transferred in 21.341000 secs (47.98 bytes/sec)",
    ));
    let fact = edited.fact("printed-rate").expect("a wrong rate");
    assert_eq!(fact.value.to_string(), "47.98 bytes/sec");
}

/// 1.14 GB/s are 1.1 GB/s as dd prints it, which is no other number and no other unit.
#[test]
fn a_printed_rate_that_is_rounded_is_none_of_its_own() {
    for (bytes, rate) in [
        ("11250000000", "1.1 GB/s"),
        ("11490000000", "1.1 GB/s"),
        ("10510000000", "1.1 GB/s"),
        ("104900000", "10.5 MB/s"),
    ] {
        let line = format!("{bytes} bytes (11 GB, 10 GiB) copied, 10 s, {rate}");
        assert_eq!(only(&records("16+0", &line)).fact("printed-rate"), None);
    }
    let other = "10000000000 bytes (10 GB, 9.3 GiB) copied, 10 s, 1.1 GB/s";
    assert!(only(&records("16+0", other)).fact("printed-rate").is_some());
}

#[test]
fn nothing_copied_is_no_rate() {
    // Input and output swapped: the file is truncated, nothing is read.
    let part =
        only("0+0 records in\n0+0 records out\n0 bytes (0 B) copied, 7.5694e-05 s, 0.0 kB/s\n");
    assert_eq!((part.total_bytes, part.total_ios), (Some(0), Some(0)));
    assert!(!part.has_rate());
    let fact = part.fact("no-rate").expect("a reason");
    assert_eq!(fact.value.to_string(), "nothing was copied");
    let infinite = only(&records(
        "1+0",
        "4096 bytes (4.1 kB, 4.0 KiB) copied, 0 s, Infinity B/s",
    ));
    assert_eq!(
        (infinite.runtime_ns, infinite.bytes_per_second),
        (None, None)
    );
    let fact = infinite.fact("no-rate").expect("a reason");
    assert_eq!(fact.value.to_string(), "dd's clock counted no time");
}

#[test]
fn records_alone_are_no_bytes() {
    let part = only(include_str!("data/busybox-1.35-debian.txt"));
    assert_eq!((part.total_ios, part.total_bytes), (Some(5), None));
    assert!(part.fact("no-rate").is_some());
}

/// As `2>&1 | tail -1` leaves it, or whoever copies the one line that has the rate.
#[test]
fn a_line_of_bytes_and_time_alone_is_a_run() {
    let text = "$ dd if=/dev/sda of=/dev/null bs=1M count=1000 iflag=direct\n\
        1048576000 bytes (1.0 GB, 1000 MiB) copied, 5.2 s, 202 MB/s\n\
        1048576000 bytes transferred in 10.400000 secs (100824615 bytes/sec)\n\
        1048576000 Bytes (1,0 GB, 1000 MiB) kopiert, 2,6 s, 403 MB/s\n";
    assert!(super::is_in(text));
    let result = parse(text).expect("three runs");
    let told = result.parts.iter();
    let told: Vec<_> = told
        .map(|part| (part.operation, part.total_bytes, part.runtime_ns))
        .collect();
    let bytes = Some(1_048_576_000);
    assert_eq!(
        told,
        [
            (Operation::Read, bytes, Some(5_200_000_000)),
            (Operation::Write, bytes, Some(10_400_000_000)),
            (Operation::Write, bytes, Some(2_600_000_000)),
        ]
    );
    assert_eq!(result.parts[0].total_ios, None);
    assert_eq!(result.parts[0].fact("records-out-whole"), None);
    assert_eq!(result.options.len(), 5);
}

#[test]
fn lines_of_other_programs_are_not_dd_s() {
    for line in [
        " Timing buffered disk reads: 512 MB in  3.00 seconds = 170.5 MB/sec",
        "sent 1234 bytes  received 35 bytes  838.00 bytes/sec",
        "1.00GiB 0:00:05 [ 200MiB/s] [=====>] 100%",
        "backup.tar  100% 1000MB 100.0MB/s   00:10",
        "2026-11-28 11:02:33 (12.3 MB/s) - 'x' saved [1048576/1048576]",
        "100  1000M  100  1000M    0     0   112M      0  0:00:08  0:00:08 --:--:--  113M",
        "1048576000 bytes were there for 5 s",
        "   READ: bw=70.1MiB/s (73.5MB/s), 70.1MiB/s-70.1MiB/s, io=188MiB, run=2680-2680msec",
    ] {
        assert!(!super::is_in(line), "{line}");
    }
}

#[test]
fn partial_and_truncated_records_are_counted() {
    let text = "0+100 records in\n3+97 records out\n2 truncated records\n209715200 bytes (210 MB, 200 MiB) copied, 2 s, 105 MB/s\n";
    let part = only(text);
    let value = |name: &str| part.fact(name).map(|fact| fact.value.to_string());
    assert_eq!(value("records-in-partial").as_deref(), Some("100"));
    assert_eq!(value("records-out-whole").as_deref(), Some("3"));
    assert_eq!(value("records-truncated").as_deref(), Some("2"));
    assert_eq!(part.block_size_bytes, None);
}

#[test]
fn several_runs_with_progress_and_time_are_told_apart() {
    let text = "\r104857600 bytes (105 MB, 100 MiB) copied, 1 s, 105 MB/s\r209715200 bytes (210 MB, 200 MiB) copied, 2 s, 105 MB/s\n\
        200+0 records in\n200+0 records out\n209715200 bytes (210 MB, 200 MiB) copied, 2.1 s, 99.9 MB/s\n\
        \t53m50.33s real\t\t0.45s user\t\t11.12s sys\n\
        dd: closing output file\n\
        1+0 records in\n1+0 records out\n512 bytes copied, 0.1 s, 5.1 kB/s\nreal\t0m1.5s\n";
    let result = parse(text).expect("two runs");
    let bytes: Vec<_> = result.parts.iter().map(|part| part.total_bytes).collect();
    assert_eq!(bytes, [Some(209_715_200), Some(512)]);
    let time = |part: usize, name: &str| {
        result.parts[part]
            .fact(name)
            .and_then(|fact| fact.value.number())
    };
    assert_eq!(time(0, "time-real"), Some(3230.33));
    assert_eq!(time(0, "time-sys"), Some(11.12));
    assert_eq!(time(1, "time-real"), Some(1.5));
    assert_eq!(result.messages, ["dd: closing output file"]);
}

/// GNU dd 9.1 on a full file system, and FreeBSD's on a bad sector.
#[test]
fn errors_belong_to_the_run_that_they_ended() {
    let good = "3+0 records in\n3+0 records out\n3145728 bytes (3.1 MB) copied, 1.5 s, 2.1 MB/s\n";
    let text = format!(
        "dd: failed to open 'y': Permission denied\n{good}\
         dd: error writing 'x': No space left on device\n{good}{good}\
         dd: /dev/da0: Input/output error\n{good}\
         dd: warning: partial read (4096 bytes); suggest iflag=fullblock\n{good}"
    );
    let result = parse(&text).expect("five runs");
    let error = |part: &Part| part.fact("error").map(|fact| fact.value.to_string());
    let errors: Vec<_> = result.parts.iter().map(error).collect();
    let full = "error writing 'x': No space left on device".to_owned();
    let bad = "/dev/da0: Input/output error".to_owned();
    assert_eq!(errors, [None, Some(full), None, Some(bad), None]);
    assert_eq!(result.messages.len(), 4, "{:?}", result.messages);
}

#[test]
fn what_is_no_output_is_refused() {
    assert!(matches!(
        parse("dd: not found"),
        Err(ParseError::NoOutput { .. })
    ));
    let error = parse("x\n1+0 records in\n").expect_err("no output");
    assert_eq!(
        error.to_string(),
        "line 2: expected records in, then a line of records out, found `1+0`"
    );
}

#[test]
fn a_command_above_its_output_tells_what_was_copied() {
    let text = "$ sudo dd if=/dev/sda of=/dev/null bs=1M count=16 iflag=direct 2>&1\n\
        16+0 records in\n16+0 records out\n16777216 bytes (17 MB) copied, 0.1 s, 168 MB/s\n\
        $ dd if=/dev/zero of=f bs=1M count=2 conv=fsync\n\
        2+0 records in\n2+0 records out\n2097152 bytes (2.1 MB) copied, 0.1 s, 21.0 MB/s\n";
    let result = parse(text).expect("dd's own output");
    let operations: Vec<_> = result.parts.iter().map(|part| part.operation).collect();
    assert_eq!(operations, [Operation::Read, Operation::Write]);
    let of = |job, name: &str| {
        let mut options = result.options.iter();
        let found = options.find(|option| option.job == Some(job) && option.name == name);
        found.map(|option| option.value.as_str())
    };
    assert_eq!((of(0, "iflag"), of(0, "conv")), (Some("direct"), None));
    assert_eq!((of(1, "conv"), of(1, "count")), (Some("fsync"), Some("2")));
    assert_eq!(result.messages, [""; 0]);
}

#[test]
fn dd_reads_or_writes_its_place() {
    let place = Place {
        path: "/mnt/array",
        file: "/mnt/array/file",
    };
    let does = |words: [&str; 2]| {
        let words = words.map(str::to_owned).to_vec();
        TOOL.call(words, &place).map(|call| call.operation)
    };
    let read = does(["if=/mnt/array/file", "of=/dev/null"]);
    assert_eq!(read, Ok(Some(Operation::Read)));
    let write = does(["if=/dev/zero", "of=/mnt/array/file"]);
    assert_eq!(write, Ok(Some(Operation::Write)));
    // An article's swapped operands: a file is made, nothing is read.
    let swapped = does(["if=/dev/null", "of=/mnt/array/file"]);
    assert_eq!(swapped, Ok(Some(Operation::Write)));
    assert!(does(["if=/dev/zero", "of=/dev/null"]).is_err());
    // Of two outputs only the last is written to.
    assert!(does(["of=/mnt/array/file", "of=/dev/null"]).is_err());
    let last = does(["of=/dev/null", "of=/mnt/array/file"]);
    assert_eq!(last, Ok(Some(Operation::Write)));
}

#[test]
fn sizes_are_read_as_dd_reads_them() {
    for (text, expected) in [
        ("4096", Some(4096)),
        ("1M", Some(1 << 20)),
        ("64k", Some(65_536)),
        ("1MiB", Some(1 << 20)),
        ("1MB", Some(1_000_000)),
        ("2kB", Some(2000)),
        ("8b", Some(4096)),
        ("3w", Some(6)),
        ("2x512", Some(1024)),
        ("2x1k", Some(2048)),
        ("", None),
        ("1.5M", None),
        ("99999999999P", None),
    ] {
        assert_eq!(bytes(text), expected, "{text}");
    }
}

#[test]
fn what_is_counted_are_blocks_that_are_read() {
    for (words, expected) in [
        ("bs=1M count=2", Some("2097152")),
        ("ibs=4k obs=1M count=2", Some("8192")),
        ("obs=1M count=2", Some("1024")),
        ("ibs=4k iflag=count_bytes count=2", None),
        ("bs=1M count=4k", Some("4294967296")),
        ("bs=512 count=2x1k", Some("1048576")),
        ("bs=1M count=4kB", None),
    ] {
        let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
        let mut facts = crate::Facts::default();
        crate::dd::TOOL.job_facts(&words, &mut facts);
        let mut sizes = facts.all.iter();
        let size = sizes.find(|fact| fact.name == raidlab_results::fact::JOB_ASKED_SIZE_BYTES);
        assert_eq!(size.map(|fact| fact.value.as_str()), expected, "{words:?}");
    }
}

/// The commonest read of a file has no `count`: all of it is copied.
#[test]
fn what_was_copied_is_what_was_touched() {
    let output = records(
        "4096+0",
        "4294967296 bytes (4.3 GB, 4.0 GiB) copied, 6.1 s, 704 MB/s",
    );
    let set = |command: &str| {
        let result = parse(&format!("{command}\n{output}")).expect("dd's own output");
        let facts = crate::Facts::of(&result).all;
        let mut sets = facts.into_iter();
        let set = sets.find(|fact| fact.name == raidlab_results::fact::JOB_WORKING_SET_BYTES);
        set.map(|fact| fact.value)
    };
    let whole = Some("4294967296".to_owned());
    assert_eq!(set("$ dd if=x of=/dev/null bs=1M"), whole);
    assert_eq!(set("$ dd if=x of=/dev/null bs=1M count=4096"), whole);
    // Whether this one went past memory is not known.
    assert_eq!(set(""), None);
}

/// Of a dd that is asked while it runs, and of one that reads on past errors, the last report
/// counts, and the next command has the next report.
#[test]
fn interim_reports_are_no_runs() {
    let report = |count: u64| {
        let line = format!(
            "{} bytes (1 GB) copied, {count} s, 1.0 MB/s",
            count * 1_048_576
        );
        records(&format!("{count}+0"), &line)
    };
    let told = |text: &str| -> Vec<(Operation, u64)> {
        let result = parse(text).expect("dd's own output");
        let parts = result.parts.iter();
        let mib = |part: &Part| part.total_bytes.unwrap_or(0) >> 20;
        parts.map(|part| (part.operation, mib(part))).collect()
    };
    let text = |lines: &[&str], counts: &[u64]| -> String {
        let reports = counts.iter().map(|&count| report(count));
        let between = lines.iter().copied().skip(1).chain(std::iter::repeat(""));
        let pairs = reports
            .zip(between)
            .map(|(report, line)| report + line + "\n");
        format!("{}\n{}", lines[0], pairs.collect::<String>())
    };
    let both = "# dd if=/dev/zero of=x bs=1M count=20; dd if=x of=/dev/null bs=1M count=20";
    let (write, read) = (Operation::Write, Operation::Read);
    assert_eq!(
        told(&text(&[both], &[4, 9, 20, 20])),
        [(write, 20), (read, 20)]
    );
    // A full disk, and a file that is shorter than was thought.
    assert_eq!(told(&text(&[both], &[4, 9])), [(write, 4), (read, 9)]);
    let alone = "$ dd if=/dev/sda of=/dev/null bs=1M";
    assert_eq!(
        told(&text(&[alone, "$ kill -USR1 7"], &[4, 9])),
        [(read, 9)]
    );
    assert_eq!(told(&text(&[alone], &[9, 9])), [(read, 9), (write, 9)]);
    assert_eq!(told(&text(&[alone, "once more:"], &[4, 9])).len(), 2);
    let of_files = "> dd if=$file of=/dev/null bs=1M";
    assert_eq!(told(&text(&[of_files], &[4, 9])).len(), 2);
    let asking = "dd if=/dev/zero of=x & while kill -USR1 $!; do sleep 1; done";
    assert_eq!(told(&text(&[asking], &[4, 9, 20])), [(write, 20)]);
    let failing = "$ dd if=/dev/sda of=/dev/null bs=1M conv=noerror";
    let error = "dd: error reading '/dev/sda': Input/output error";
    let failing = text(&[failing, error, error], &[4, 4, 20]);
    assert_eq!(told(&failing), [(read, 20)]);
    let first = &parse(&failing).expect("dd's own output").parts[0];
    assert!(first.fact("error").is_some());
    // FreeBSD and macOS, also where the command is not told.
    let load = "load: 0.12  cmd: dd 1234 [physrd] 5.02r 0.00u 0.31s 3% 2540k";
    let asked = text(&[load, load], &[4, 9, 20]);
    assert_eq!(told(&asked), [(write, 20)]);
    assert_eq!(told(&(asked + &report(20))), [(write, 20), (write, 20)]);
}

/// Each command of a line has an output of its own, in a loop each time, and one that does not
/// begin has none.
#[test]
fn commands_of_one_line_are_told_apart() {
    let output = "16+0 records in\n16+0 records out\n\
        16777216 bytes (17 MB, 16 MiB) copied, 2 s, 8.4 MB/s\n";
    let told = |commands: &str, outputs: &str| -> Vec<(Operation, Option<String>)> {
        let result = crate::dd::TOOL.parse(&format!("$ {commands}\n{outputs}"));
        let result = result.expect("dd's own output");
        let conv = |part: &Part| {
            let mut own = result
                .options
                .iter()
                .filter(|one| one.job == Some(part.job));
            Some(own.find(|one| one.name == "conv")?.value.clone())
        };
        let parts = result.parts.iter();
        parts.map(|part| (part.operation, conv(part))).collect()
    };
    let (write, read) = (
        (Operation::Write, Some("fsync".to_owned())),
        (Operation::Read, None),
    );
    let twice = output.repeat(2);
    for line in [
        "dd if=/dev/zero of=x bs=1M conv=fsync; dd if=x of=/dev/null bs=1M",
        "(dd if=/dev/zero of='x' conv=fsync) && time dd if=x of=/dev/null",
        "sh -c \"dd if=/dev/zero of=x conv=fsync; dd if=x of=/dev/null\"",
    ] {
        assert_eq!(told(line, &twice), [write.clone(), read.clone()], "{line}");
    }
    let line = "for i in 1 2 3; do dd if=/dev/zero of=x$i bs=1M conv=fsync; done";
    let three = output.repeat(3);
    assert_eq!(told(line, &three), [write.clone(), write.clone(), write]);
    let failed = format!("dd: failed to open 'y': No such file or directory\n{output}");
    let line = "dd if=y of=z; dd if=x of=/dev/null";
    assert_eq!(told(line, &failed), [read]);
}
