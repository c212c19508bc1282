//! `3.489-*` are this project's own runs of iozone 3.489.

use super::parse;
use crate::result::{LatencyKind, Part, ToolResult};
use crate::{Operation, ParseError};

const SUBSET: &str = include_str!("data/3.489-subset.txt");
const EXCEL: &str = include_str!("data/3.489-excel.txt");
const THROUGHPUT: &str = include_str!("data/3.489-throughput.txt");
const THROUGHPUT_SHEET: &str = include_str!("data/3.489-throughput-excel.txt");
const OPS: &str = include_str!("data/3.489-ops.txt");
const LATENCY: &str = include_str!("data/3.489-latency.txt");

fn of<'a>(result: &'a ToolResult, label: &str, operation: Operation) -> &'a Part {
    result
        .parts
        .iter()
        .find(|part| part.operation == operation && part.label == label)
        .unwrap_or_else(|| panic!("no {operation} of {label}"))
}

#[test]
fn a_table_with_some_tests_is_read() {
    let result = parse(SUBSET).expect("iozone's own output");
    assert_eq!(result.version, "3.489");
    assert_eq!(result.parts.len(), 4 * 6);
    let part = of(&result, "512k/64k", Operation::RandomWrite);
    assert_eq!(part.bytes_per_second, Some(835_334.0 * 1024.0));
    assert_eq!(
        (part.file_size_bytes, part.block_size_bytes),
        (Some(512 << 10), Some(64 << 10))
    );
    assert_eq!(part.job, 3);
    let flags: Vec<_> = result
        .options
        .iter()
        .filter(|option| option.name.starts_with('-'))
        .map(|option| option.name.as_str())
        .collect();
    assert_eq!(flags, ["-a", "-e", "-I"]);
    assert_eq!(result.messages, [""; 0]);
}

#[test]
fn columns_are_found_without_a_command_line() {
    let without = SUBSET.replace("Command line used", "Command line lost");
    let by_place = parse(&without).expect("a table");
    assert_eq!(by_place.parts, parse(SUBSET).expect("a table").parts);
}

#[test]
fn the_sheet_says_what_the_table_says() {
    let table = parse(EXCEL).expect("iozone's own output");
    assert_eq!(table.parts.len(), 13 * 13);
    let start = EXCEL.find("Excel output").expect("a sheet");
    let sheet = parse(&EXCEL[start..]).expect("a sheet");
    assert_eq!(sheet.parts.len(), table.parts.len());
    for part in &table.parts {
        let same = of(&sheet, &part.label, part.operation);
        assert_eq!(
            same.bytes_per_second, part.bytes_per_second,
            "{}",
            part.label
        );
    }
    assert_eq!(
        sheet.messages,
        ["iozone does not say that its test is complete"]
    );
}

#[test]
fn zeros_are_no_values() {
    let zero = SUBSET
        .replace("   711", "     0")
        .replace("825443", "     0");
    let result = parse(&zero).expect("a table");
    let part = of(&result, "256k/64k", Operation::RandomWrite);
    assert!(!part.has_rate());
    let fact = part.fact("no-rate").expect("a reason");
    assert_eq!(fact.value.to_string(), "0: the test was not run");
}

#[test]
fn throughput_is_a_part_for_each_test() {
    let result = parse(THROUGHPUT).expect("iozone's own output");
    let operations: Vec<_> = result.parts.iter().map(|part| part.operation).collect();
    assert_eq!(
        operations,
        [
            Operation::Write,
            Operation::Rewrite,
            Operation::Read,
            Operation::Reread,
            Operation::RandomRead,
            Operation::RandomWrite,
        ]
    );
    let write = &result.parts[0];
    assert_eq!(write.label, "2 processes");
    assert_eq!(write.bytes_per_second, Some(3_389_494.5 * 1024.0));
    assert_eq!(
        (write.file_size_bytes, write.block_size_bytes),
        (Some(512 << 10), Some(16 << 10))
    );
    assert_eq!(write.cpu_percent, Some(181.97));
    assert_eq!(result.parts[1].cpu_percent, Some(193.71));
    let least = write.fact("least-transfer").expect("the slowest");
    assert_eq!(least.to_string(), "least-transfer=352kB");
    let parent = write.fact("parent-rate").expect("the parent's view");
    assert_eq!(parent.value.number(), Some(432_608.66));
    let sheet = parse(THROUGHPUT_SHEET).expect("iozone's own output");
    assert_eq!(sheet.parts.len(), 7);
    assert_eq!(sheet.parts[6].operation, Operation::Mixed);
}

/// Two processes, each with 512 KiB of its own.
#[test]
fn each_process_has_a_file_of_its_own() {
    let result = parse(THROUGHPUT).expect("iozone's own output");
    let facts = crate::Facts::of(&result).all;
    let mut sets = facts.iter();
    let set = sets.find(|fact| fact.name == raidlab_results::fact::JOB_WORKING_SET_BYTES);
    assert_eq!(set.map(|fact| fact.value.as_str()), Some("1048576"));
}

#[test]
fn the_heading_tells_the_unit() {
    let ops = parse(OPS).expect("iozone's own output");
    assert_eq!(ops.parts[0].operations_per_second, Some(164_926.0));
    assert_eq!(ops.parts[0].bytes_per_second, None);
    let latency = parse(LATENCY).expect("iozone's own output");
    let mean = latency.parts[0].latency().expect("a latency");
    assert_eq!(
        (mean.kind, mean.mean_ns),
        (LatencyKind::Total, Some(5000.0))
    );
    assert!(!latency.parts[0].has_rate());
}

#[test]
fn processor_time_of_a_sheet_joins_its_part() {
    let text = "\"Writer report\"\n        \"4\"  \"8\"\n\"64\"   100  0\n\n\"Writer CPU utilization report (Zero values should be ignored)\"\n   \"4\"  \"8\"\n\"64\"  12.50 0.00\nExcel output is below:\n";
    let result = parse(text).expect("a sheet");
    assert_eq!(result.parts[0].cpu_percent, Some(12.5));
    assert_eq!(result.parts[1].cpu_percent, None);
    assert!(!result.parts[1].has_rate());
}

#[test]
fn errors_name_the_line() {
    let touching = SUBSET.replace("   568777   659625", "568777659625");
    let error = parse(&touching).expect_err("numbers that touch");
    assert!(
        error
            .to_string()
            .contains("expected numbers that do not touch"),
        "{error}"
    );
    let text = "Children see throughput for 2 readers\n";
    assert!(matches!(parse(text), Err(ParseError::Line { line: 1, .. })));
    assert!(matches!(
        parse("iozone: no space"),
        Err(ParseError::NoOutput { .. })
    ));
}

#[test]
fn files_lie_in_the_place_however_options_are_written() {
    let place = crate::Place {
        path: "/m",
        file: "/m/f",
    };
    for (words, expected) in [
        ("-a", "-a -f /m/f"),
        ("-a -f/m/x", "-a -f/m/x"),
        ("-t 2", "-t 2 -F /m/f.0 /m/f.1"),
        ("-t2", "-t2 -F /m/f.0 /m/f.1"),
        ("-Rt2 -s4m", "-Rt2 -s4m -F /m/f.0 /m/f.1"),
        ("-l1 -u 3", "-l1 -u 3 -F /m/f.0 /m/f.1 /m/f.2"),
        ("-t 2 -f /m/x", "-t 2 -f /m/x -F /m/f.0 /m/f.1"),
        ("-t 2 -F/m/a /m/b", "-t 2 -F/m/a /m/b"),
    ] {
        let arguments = words.split(' ').map(str::to_owned).collect();
        let call = crate::iozone::TOOL.call(arguments, &place).expect(words);
        assert_eq!(call.arguments.join(" "), expected, "{words}");
    }
}

#[test]
fn operations_are_known_without_a_heading() {
    let text = "\tChildren see throughput for  2 readers \t\t= 1200.50 ops/sec\n";
    let result = parse(text).expect("a paragraph");
    assert_eq!(result.parts[0].operations_per_second, Some(1200.5));
    assert_eq!(result.parts[0].bytes_per_second, None);
}
