use super::lab::{Lab, row};
use super::{Pair, pair};
use raidlab_store::Operation::{self, Read, Seek, Write, WriteCharacter};
use raidlab_store::Severity::{Fatal, Note, Warning};
use raidlab_store::{Measurement, fact};

fn made_by(tool: &str, op: Operation) -> Measurement {
    Measurement {
        tool: tool.to_owned(),
        ..row(op)
    }
}

pub(super) fn pairs() -> Vec<Pair> {
    [bonnie(), iozone(), dd()].into_iter().flatten().collect()
}

fn bonnie() -> Vec<Pair> {
    let created = |value: &str| {
        let name = fact::bonnie_not_timed(Operation::CreateSequential);
        Lab::of([made_by("bonnie++ 1.98", Seek)]).fact(&name, value)
    };
    let versions = |second: &str| {
        let linux = made_by(&format!("bonnie++ {second}"), WriteCharacter);
        let freebsd = Measurement {
            subject: "gmirror".to_owned(),
            ..made_by("bonnie++ 1.96", WriteCharacter)
        };
        Lab::of([linux, freebsd])
    };
    let files = |made: &str| {
        Lab::of([made_by("bonnie++ 1.96", Operation::CreateSequential)])
            .fact(fact::BONNIE_FILES_ASKED, "100")
            .fact(fact::BONNIE_FILES, made)
    };
    vec![
        pair("T12", Note, created("true"), created("false")),
        pair("T13", Warning, versions("1.03"), versions("1.96")),
        pair("T14", Note, files("102400"), files("100")),
    ]
}

fn iozone() -> Vec<Pair> {
    let flush = |value: &str| {
        Lab::of([made_by("iozone 3.471", Write)]).fact(fact::IOZONE_INCLUDES_FSYNC, value)
    };
    let rate = |bytes_per_second: f64| {
        Lab::of([Measurement {
            bytes_per_second,
            iops: 0.0,
            ..made_by("iozone 3.471", Read)
        }])
    };
    let rewrite = |flushed: &str| {
        Lab::of([made_by("iozone 3.489", Operation::Rewrite)])
            .fact(fact::JOB_WORKING_SET_BYTES, "268435456")
            .fact(fact::IOZONE_INCLUDES_FSYNC, flushed)
    };
    // The fact is of the most processes, of which each has a file.
    let processes = |set: &str| {
        let by = |streams: u32| Measurement {
            part: format!("{streams} processes"),
            streams,
            ..made_by("iozone 3.489", Read)
        };
        Lab::of([by(1), by(4)])
            .fact(fact::MEMORY_TOTAL_BYTES, "1073741824")
            .fact(fact::JOB_WORKING_SET_BYTES, set)
    };
    vec![
        pair(
            "C1",
            Warning,
            processes("4294967296"),
            processes("8589934592"),
        ),
        pair("C1", Warning, rewrite("false"), rewrite("true")),
        pair("T15", Warning, flush("false"), flush("true")),
        pair("T16", Fatal, rate(0.0), rate(5e8)),
    ]
}

fn dd() -> Vec<Pair> {
    let copied = |total_bytes: u64| {
        Lab::of([Measurement {
            total_bytes,
            bytes_per_second: total_bytes as f64,
            ..made_by("dd 5.97", Read)
        }])
        .fact(fact::JOB_ASKED_SIZE_BYTES, "1073741824")
    };
    let command =
        |operands: &str| Lab::of([row(Read)]).command(&format!("dd {operands} bs=1g"), 0, "");
    let records = |partial: &str| {
        Lab::of([made_by("dd", Read)])
            .fact(fact::DD_RECORDS_IN_PARTIAL, partial)
            .fact(&fact::dd_operand("of"), "/dev/null")
    };
    let flushed = |conv: &str| {
        Lab::of([made_by("dd", Write)])
            .fact(&fact::dd_operand("of"), "testfile")
            .fact(&fact::dd_operand("conv"), conv)
    };
    vec![
        pair("T17", Fatal, copied(0), copied(1_073_741_824)),
        pair(
            "T17",
            Fatal,
            command("of=testfile if=/dev/null"),
            command("if=testfile of=/dev/null"),
        ),
        pair("T18", Warning, records("1"), records("0")),
        pair("T18", Warning, flushed("notrunc"), flushed("notrunc,fsync")),
    ]
}
