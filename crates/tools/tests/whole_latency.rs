//! What fio is told on the kernel bench, against a real fio where one is installed.

use raidlab_tools::LatencyKind;
use raidlab_tools::fio::{TOOL, asked_options, check_options};
use std::process::Command;

/// fio's own choice is the time after a request's submission, in which md's barriers are not.
#[test]
fn in_virtual_time_fio_tells_times_of_whole_requests() {
    let mut arguments = TOOL.clock("clock_gettime");
    let job = ["--output-format=json+", "--name=a", "--ioengine=null"];
    let load = ["--rw=write", "--bs=4k", "--size=1m"];
    arguments.extend([&job[..], &load].concat().into_iter().map(str::to_owned));
    let Ok(output) = Command::new("fio").args(&arguments).output() else {
        return;
    };
    let text = String::from_utf8(output.stdout).expect("fio writes UTF-8");
    let result = TOOL.parse(&text).expect("fio's own output");
    assert_eq!(check_options(&asked_options(&arguments), &result), []);
    let latency = result.parts[0].latency().expect("it was timed");
    assert_eq!(latency.kind, LatencyKind::Total);
    assert!(!latency.percentiles.is_empty());
}
