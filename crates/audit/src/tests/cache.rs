use super::lab::{Lab, member, random, row};
use super::{Pair, pair};
use raidlab_store::Operation::{Read, Write};
use raidlab_store::Severity::{Fatal, Note, Warning};
use raidlab_store::{Measurement, fact};

fn rate(bytes_per_second: f64) -> Measurement {
    Measurement {
        bytes_per_second,
        ..row(Read)
    }
}

/// A read of a mirror whose members were counted.
fn counted(read_bytes: u64) -> Lab {
    Lab::mirror([Measurement {
        members: vec![member(read_bytes, 0), member(read_bytes, 0)],
        ..row(Read)
    }])
}

/// The same in fio's text for people, where a trace looks like a job without options.
fn in_text(block_size_bytes: u64) -> Lab {
    let mut lab = counted(1_000_000_000).fact(fact::FIO_OPTIONS_UNTOLD, "true");
    lab.rows[0].block_size_bytes = block_size_bytes;
    lab
}

pub(super) fn pairs() -> Vec<Pair> {
    [data_set(), state()].into_iter().flatten().collect()
}

fn data_set() -> Vec<Pair> {
    let memory = |lab: Lab, set: &str| {
        lab.fact(fact::MEMORY_TOTAL_BYTES, "1342177280")
            .fact(fact::JOB_WORKING_SET_BYTES, set)
            .fact(&fact::fio_option("direct"), "0")
    };
    let small = |read_bytes| memory(counted(read_bytes), "1048576");
    let written = |percent: &str| Lab::of([row(Read)]).fact(fact::WRITTEN_PERCENT, percent);
    let zeros = |pattern: &str| {
        Lab::of([row(Write)])
            .fact(fact::JOB_DATA_PATTERN, pattern)
            .fact(fact::COMPRESSION, "lz4")
    };
    let deduplicated = |kind: &str| {
        Lab::of([row(Write)])
            .fact(fact::DEDUPLICATION, kind)
            .fact(fact::DEDUPLICATION_RATIO, "1.50")
    };
    let flushed =
        |dirty: &str| Lab::of([row(Write)]).fact(&fact::dirty_bytes(fact::moment::AFTER), dirty);
    let ladder = |second_offset: &str| {
        let later = Measurement {
            sequence: 1,
            ..random(Read, 180.0)
        };
        Lab::mirror([random(Read, 170.0), later])
            .fact(&fact::fio_option("direct"), "0")
            .cell_fact(0, fact::JOB_OFFSET_BYTES, "0", "bytes")
            .cell_fact(1, fact::JOB_OFFSET_BYTES, second_offset, "bytes")
    };
    let seeded = |tool: &str| {
        let job = |sequence, rate| Measurement {
            sequence,
            tool: tool.to_owned(),
            ..random(Read, rate)
        };
        let name = fact::fio_option("randseed");
        Lab::mirror([job(0, 170.0), job(1, 180.0)])
            .fact(&fact::fio_option("direct"), "0")
            .fact(fact::JOB_OFFSET_BYTES, "0")
            .cell_fact(0, &name, "101", "")
            .cell_fact(1, &name, "102", "")
    };
    vec![
        pair(
            "B1",
            Fatal,
            Lab::mirror([rate(2.9e9)]),
            Lab::mirror([rate(3.3e8)]),
        ),
        pair(
            "C1",
            Warning,
            memory(Lab::mirror([rate(3.6e8)]), "1073741824"),
            memory(Lab::mirror([rate(3.6e8)]), "107374182400"),
        ),
        pair(
            "C1",
            Fatal,
            memory(Lab::mirror([rate(7.9e8)]), "1073741824"),
            memory(Lab::mirror([rate(7.9e8)]), "1073741824").fact(&fact::fio_option("direct"), "1"),
        ),
        pair("C2", Fatal, counted(1_000_000_000), counted(3_100_000_000)),
        pair(
            "C2",
            Fatal,
            counted(1_000_000_000),
            counted(1_000_000_000).fact(&fact::fio_option("read_iolog"), "trace"),
        ),
        pair("C2", Fatal, in_text(4097), in_text(4096)),
        // A direct read of a little, which C1 does not judge: from md's stripe cache, say.
        pair(
            "C2",
            Fatal,
            small(1_000_000_000).fact(&fact::fio_option("direct"), "1"),
            small(3_100_000_000).fact(&fact::fio_option("direct"), "1"),
        ),
        pair(
            "C2",
            Warning,
            Lab::mirror([rate(2.9e9)]),
            Lab::mirror([rate(2e8)]),
        ),
        pair("C3", Warning, flushed("600008294"), flushed("60000829")),
        pair("C7", Fatal, written("3"), written("100")),
        pair("C8", Warning, zeros("zero"), zeros("random")),
        pair("C9", Warning, deduplicated("on"), deduplicated("off")),
        pair("C11", Warning, ladder("0"), ladder("1048576")),
        pair("C11", Warning, seeded("fio 3.33"), seeded("fio 3.35")),
        pair(
            "C11",
            Warning,
            ladder("0"),
            ladder("0").cell_fact(1, &fact::fio_option("bssplit"), "4k/50:64k/50", ""),
        ),
    ]
}

fn state() -> Vec<Pair> {
    let repeated = |second: f64| {
        let later = Measurement {
            repetition: 1,
            ..rate(second)
        };
        Lab::of([rate(1e8), later])
    };
    let dropped = |left: &str| {
        Lab::of([row(Read)])
            .fact(fact::CACHES_DROPPED, "true")
            .fact(&fact::cached_bytes(fact::moment::BEFORE_DROP), "8000000000")
            .fact(&fact::cached_bytes(fact::moment::BEFORE), left)
    };
    let log = |commands: &str| {
        Lab::of([row(Write)])
            .fact(fact::ARRAY_AUXILIARY, "cache log")
            .fact(fact::LOG_DEVICE_IOS, commands)
    };
    let cache = |second: &str| {
        Lab::mirror([row(Write)])
            .fact(&fact::disk("sdb", "write_cache"), "write back")
            .fact(&fact::disk("sdc", "write_cache"), second)
    };
    let single = |iops: f64| Lab::mirror([random(Write, iops)]);
    let setting = |found: &str| {
        Lab::of([row(Read)])
            .subject_fact("md", "setting.primarycache.asked", "metadata")
            .subject_fact("md", "setting.primarycache.found", found)
    };
    let option = |applied: &str| {
        Lab::of([row(Read)])
            .cell_fact(0, "option.iodepth.asked", "32", "")
            .cell_fact(0, "option.iodepth.found", "1", "")
            .cell_fact(0, "option.iodepth.applied", applied, "")
    };
    let glued = |arguments: &str| Lab::of([row(Read)]).command(&format!("fio {arguments}"), 0, "");
    let echo = |stdout: &str| {
        let kept = dropped("1000000");
        kept.command("echo 3 > /proc/sys/vm/drop_caches", 0, stdout)
    };
    vec![
        pair("C4", Warning, repeated(1.9e8), repeated(1.2e8)),
        pair("C5", Warning, dropped("7900000000"), dropped("400000000")),
        pair(
            "C5",
            Warning,
            echo("3 > /proc/sys/vm/drop_caches\n"),
            echo(""),
        ),
        pair("C6", Note, log("0"), log("5000")),
        pair("C10", Warning, cache("write through"), cache("write back")),
        pair("C10", Note, single(180.0), single(100.0)),
        pair("C12", Warning, setting("all"), setting("metadata")),
        pair("C12", Fatal, option("false"), option("true")),
        pair(
            "C12",
            Fatal,
            glued("--end_fsync=1--time_based=1"),
            glued("--end_fsync=1 --time_based=1"),
        ),
    ]
}

#[test]
fn a_small_working_set_is_told_in_a_unit_of_its_size() {
    let found = Lab::of([row(Read)])
        .fact(fact::MEMORY_TOTAL_BYTES, "1342177280")
        .fact(fact::JOB_WORKING_SET_BYTES, "16777216")
        .fact(&fact::fio_option("direct"), "0")
        .audit();
    let mut findings = found.findings.iter();
    let own = findings.find(|finding| finding.rule == "C1");
    let told = own.map(|finding| finding.evidence.as_str());
    assert_eq!(told, Some("touches 16 MiB, memory holds 1.25 GiB"));
}
