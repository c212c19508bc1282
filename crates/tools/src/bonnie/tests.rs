//! `2.00a-*` are this project's own runs of Debian's bonnie++ 2.00a; lines of
//! 1.03 and 1.96 follow the figures of a comparison of mdadm and gmirror of
//! 2010, tables of 1.98 those of a comparison of ZFS pools on FreeBSD.

use super::{TOOL, parse_csv, table};
use crate::result::{Part, ToolResult};
use crate::{Operation, ParseError};

const TWO_RUNS: &str = include_str!("data/2.00a-x2.csv");
const FAST: &str = include_str!("data/2.00a-fast.txt");
const SMALL: &str = include_str!("data/2.00a-small.txt");
const FILES: &str = include_str!("data/2.00a-files.txt");

fn of(result: &ToolResult, operation: Operation) -> &Part {
    result
        .parts
        .iter()
        .find(|part| part.operation == operation)
        .unwrap_or_else(|| panic!("no {operation}"))
}

fn no_rate(part: &Part) -> String {
    assert!(!part.has_rate());
    part.fact("no-rate").expect("a reason").value.to_string()
}

#[test]
fn runs_of_one_call_are_jobs_and_names_keep_their_commas() {
    let result = TOOL.parse(TWO_RUNS).expect("bonnie++'s own output");
    assert_eq!(
        (result.version.as_str(), result.format),
        ("2.00a", crate::bonnie::CSV)
    );
    assert_eq!(result.parts.len(), 24);
    let [first, second] = [&result.parts[0], &result.parts[12]];
    assert_eq!((first.job, second.job), (0, 1));
    assert_eq!(first.label, "a,b\"c");
    assert_eq!(first.operation, Operation::WriteCharacter);
    assert_eq!(first.bytes_per_second, Some(1393.0 * 1024.0));
    assert_eq!(second.bytes_per_second, Some(1381.0 * 1024.0));
    assert_eq!(first.cpu_percent, Some(99.0));
    assert_eq!(first.file_size_bytes, Some(64 << 20));
    let latency = first.latency().expect("a latency");
    assert_eq!(latency.max_ns, Some(6_382_000));
    let block = of(&result, Operation::Write);
    assert_eq!(
        no_rate(block),
        "+++++: the test took less than half a second"
    );
    assert_eq!(block.cpu_percent, None);
    let create = of(&result, Operation::CreateSequential);
    assert_eq!(create.total_ios, Some(1024));
    let seeks = result.options.iter().find(|option| option.name == "seeks");
    assert_eq!(seeks.map(|option| option.value.as_str()), Some("8192"));
}

#[test]
fn csv_is_taken_before_the_table() {
    let both = TOOL.parse(FAST).expect("bonnie++'s own output");
    assert_eq!(both.format, crate::bonnie::CSV);
    assert_eq!(both.parts[0].label, "a-very-long-machine-name-here");
    let create = of(&both, Operation::CreateRandom);
    assert_eq!(create.operations_per_second, Some(3803.0));
    // `-f`: single bytes were not tried.
    let has = |operation| both.parts.iter().any(|part| part.operation == operation);
    assert!(!has(Operation::WriteCharacter) && !has(Operation::ReadCharacter));
    assert_eq!(
        of(&both, Operation::Write).bytes_per_second,
        Some(372_873.0 * 1024.0)
    );
}

#[test]
fn a_table_with_blanks_is_read_by_its_columns() {
    let table = table::parse(FAST).expect("bonnie++'s own output");
    let operations: Vec<_> = table.parts.iter().map(|part| part.operation).collect();
    assert_eq!(
        operations[..4],
        [
            Operation::Write,
            Operation::Rewrite,
            Operation::Read,
            Operation::Seek
        ]
    );
    assert_eq!(table.parts[0].label, "a-very-lo");
    assert_eq!(table.parts[0].file_size_bytes, Some(3000 << 20));
    assert_eq!(table.parts[0].block_size_bytes, Some(64 << 10));
    assert_eq!(table.parts[0].bytes_per_second, Some(364.0 * 1_048_576.0));
    assert_eq!(table.parts[0].cpu_percent, Some(75.0));
    assert_eq!(table.parts[1].bytes_per_second, Some(3.5 * 1_073_741_824.0));
    assert_eq!(table.parts[3].operations_per_second, Some(13823.0));
    let slowest: Vec<_> = table.parts[..4]
        .iter()
        .map(|part| part.latency().and_then(|latency| latency.max_ns))
        .collect();
    assert_eq!(
        slowest,
        [
            Some(12_012_000),
            Some(4_056_000),
            Some(58_000),
            Some(3_417_000)
        ]
    );
}

#[test]
fn rates_of_files_in_a_table_of_2_00_are_no_values() {
    // The same run's CSV says 3803 where the table says 2048.
    let table = table::parse(FAST).expect("bonnie++'s own output");
    let create = of(&table, Operation::CreateRandom);
    assert!(no_rate(create).contains("wrongly"));
    assert_eq!(create.cpu_percent, Some(47.0));
}

#[test]
fn parts_that_were_not_asked_for_are_missing() {
    let small = TOOL.parse(SMALL).expect("bonnie++'s own output");
    assert_eq!(small.parts.len(), 6);
    let table = table::parse(SMALL).expect("bonnie++'s own output");
    assert_eq!(table.parts.len(), 6);
    for (csv, table) in small.parts.iter().zip(&table.parts) {
        assert_eq!(
            (csv.operation, csv.cpu_percent),
            (table.operation, table.cpu_percent)
        );
        assert_eq!(csv.latencies, table.latencies);
    }
    let files = TOOL.parse(FILES).expect("bonnie++'s own output");
    assert_eq!(files.parts.len(), 6);
    let folders = files
        .options
        .iter()
        .find(|option| option.name == "num_dirs");
    assert_eq!(folders.map(|option| option.value.as_str()), Some("2"));
    let table = table::parse(FILES).expect("bonnie++'s own output");
    assert_eq!(table.parts[0].label, "host");
}

/// bonnie++ 1.98 on FreeBSD, 64 GiB; numbers push each other to the right.
const WIDE: &str = "\
Version  1.98       ------Sequential Output------ --Sequential Input- --Random-
                    -Per Chr- --Block-- -Rewrite- -Per Chr- --Block-- --Seeks--
Name:Size etc        /sec %CP  /sec %CP  /sec %CP  /sec %CP  /sec %CP  /sec %CP
alpinaR1_cache_ 64G  287k  99 10.4m   1 8373k   1  720k  99  2.7g  99 200.0   4
Latency             29770us     437s     430s   14303us     391us     859ms
Version  1.98       ------Sequential Create------ --------Random Create--------
alpinaR1_cache_log  -Create-- --Read--- -Delete-- -Create-- --Read--- -Delete--
              files  /sec %CP  /sec %CP  /sec %CP  /sec %CP  /sec %CP  /sec %CP
                 16 +++++ +++ +++++ +++ 165.746758   2 +++++ +++ +++++ +++ 566.048702   5
Latency             11us      5us   54405ms      12us      4us    5952ms
";

#[test]
fn a_wide_table_is_read_word_by_word() {
    let result = TOOL.parse(WIDE).expect("a table");
    assert_eq!(result.version, "1.98");
    assert_eq!(
        of(&result, Operation::Read).bytes_per_second,
        Some(2.7 * 1_073_741_824.0)
    );
    assert_eq!(
        of(&result, Operation::Rewrite).bytes_per_second,
        Some(8373.0 * 1024.0)
    );
    assert_eq!(
        of(&result, Operation::Seek).operations_per_second,
        Some(200.0)
    );
    let delete = of(&result, Operation::DeleteSequential);
    assert_eq!(delete.operations_per_second, Some(165.746_758));
    assert_eq!(delete.label, "alpinaR1_cache_");
    let write = of(&result, Operation::Write).latency().expect("a latency");
    assert_eq!(write.max_ns, Some(437_000_000_000));
}

#[test]
fn old_csv_has_its_own_columns() {
    let line = "debian,2512M,22183,74,28895,18,18529,9,26435,66,86610,16,148.5,0,100:16384:0/20,3099,40,34204,99,14121,60,20187,99,3299,10,11638,55";
    let result = TOOL.parse(line).expect("format 1");
    assert_eq!(result.parts.len(), 12);
    assert_eq!(result.parts[0].label, "debian");
    assert_eq!(result.parts[0].file_size_bytes, Some(2512 << 20));
    assert_eq!(
        of(&result, Operation::Seek).operations_per_second,
        Some(148.5)
    );
    let delete = of(&result, Operation::DeleteRandom);
    assert_eq!(
        (delete.operations_per_second, delete.total_ios),
        (Some(11638.0), Some(102_400))
    );
    let chunk = TOOL
        .parse(&line.replace("2512M", "1G:4k"))
        .expect("format 1");
    assert_eq!(of(&chunk, Operation::Write).block_size_bytes, Some(4096));
}

#[test]
fn csv_of_1_96_has_48_fields() {
    let line = "1.96,1.96,FREEBSD_gmirror,1,1288,2512M,,169,99,48840,14,23306,7,350,99,67290,11,165.1,4,100,16384,0,20,,103,1,1556,8,12206,60,100,1,166,2,9139,40,50001us,1s,2s,3ms,400ms,500ms,6s,7us,8us,9us,10us,11us";
    let result = parse_csv(line).expect("format 1.96");
    assert_eq!(
        of(&result, Operation::WriteCharacter).bytes_per_second,
        Some(169.0 * 1024.0)
    );
    assert_eq!(
        of(&result, Operation::StatRandom).operations_per_second,
        Some(166.0)
    );
    let folders = result
        .options
        .iter()
        .find(|option| option.name == "num_dirs");
    assert_eq!(folders.map(|option| option.value.as_str()), Some("20"));
    let last = of(&result, Operation::DeleteRandom)
        .latency()
        .expect("a latency");
    assert_eq!(last.max_ns, Some(11_000));
}

#[test]
fn errors_name_the_line() {
    let broken = TWO_RUNS.replace("1381,99", "13x81,99");
    let error = TOOL.parse(&broken).expect_err("no rate");
    assert!(matches!(error, ParseError::Line { line: 3, .. }), "{error}");
    assert!(matches!(
        TOOL.parse("nothing"),
        Err(ParseError::NoOutput { .. })
    ));
    let cut = WIDE.lines().take(3).collect::<Vec<_>>().join("\n");
    assert!(matches!(
        TOOL.parse(&cut),
        Err(ParseError::Line { line: 1, .. })
    ));
}

/// The last `-d` counts to bonnie++: the suite's own folder must stay the last.
#[test]
fn a_folder_that_the_suite_names_is_not_overruled() {
    let place = crate::Place {
        path: "/m",
        file: "/m/f",
    };
    for (words, expected) in [
        ("-s 1g", "-s 1g -d /m -u root -q"),
        ("-qd/m/a -uroot", "-qd/m/a -uroot"),
    ] {
        let arguments = words.split(' ').map(str::to_owned).collect();
        let call = crate::bonnie::TOOL.call(arguments, &place).expect(words);
        assert_eq!(call.arguments.join(" "), expected, "{words}");
    }
}

/// As people paste it, without the line of CSV below.
#[test]
fn a_table_tells_how_many_files_there_were() {
    use raidlab_results::fact::{BONNIE_FILES, BONNIE_FILES_ASKED};
    let table = FILES.rsplit_once("1.98,2.00a").expect("a line of CSV").0;
    let both = [table, FILES].map(|text| {
        let result = TOOL.parse(text).expect("bonnie++'s own output");
        let facts = crate::Facts::of(&result).all;
        [BONNIE_FILES, BONNIE_FILES_ASKED].map(|name| {
            let found = facts.iter().find(|fact| fact.name == name);
            found.map(|fact| fact.value.clone())
        })
    });
    let told = ["1024", "1"].map(|count| Some(count.to_owned()));
    assert_eq!(both, [told.clone(), told]);
}

/// bonnie++ 2.00a with `-s 768 -r 300 -n 0 -f -c 2`.
#[test]
fn a_table_tells_how_many_processes_there_were() {
    let table = "\
Version 2.00a       ------Sequential Output------ --Sequential Input- --Random-
                    -Per Chr- --Block-- -Rewrite- -Per Chr- --Block-- --Seeks--
Name:Size etc        /sec %CP  /sec %CP  /sec %CP  /sec %CP  /sec %CP  /sec %CP
vm          768M::2            328m  41  897m  32           +++++ +++ +++++ +++
Latency                       16034us   16132us             15433us   56403us
";
    let result = TOOL.parse(table).expect("bonnie++'s own output");
    assert_eq!(result.processes(&result.parts[0]), Some(2));
    assert_eq!(result.parts[0].file_size_bytes, Some(768 << 20));
}
