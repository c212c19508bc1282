//! The time for which other work of the machine has kept a guest from running.
//!
//! A guest that says nothing computes, and on a machine with more to do than it has processors it
//! computes slowly. The patience with a silent guest is of the time that it could run: the time
//! that its processes have spent in the queue for a processor (`/proc/PID/schedstat`, second
//! number, nanoseconds; Documentation/scheduler/ sched-stats.rst of Linux) does not count. Of
//! User-Mode Linux's processes, the kernel and one child for each address space, one at a time
//! wants to run, so the sum is the guest's.

use std::path::Path;
use std::time::Duration;

/// The processes that one guest of User-Mode Linux consists of.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Processes {
    /// The process id of the guest's kernel, whose children are the others.
    pub(crate) kernel: i32,
}

impl Processes {
    /// The time that they have waited for a processor since they exist; nothing where the system
    /// does not say.
    pub(crate) fn kept_waiting(self) -> Duration {
        let pid = self.kernel;
        let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
        let children = children.unwrap_or_default();
        let own = waited(Path::new(&format!("/proc/{pid}/schedstat")));
        children
            .split_whitespace()
            .filter_map(|child| child.parse::<u32>().ok())
            .map(|child| waited(Path::new(&format!("/proc/{child}/schedstat"))))
            .fold(own, |sum, wait| sum.saturating_add(wait))
    }
}

fn waited(schedstat: &Path) -> Duration {
    let text = std::fs::read_to_string(schedstat).unwrap_or_default();
    let nanos = text.split_whitespace().nth(1);
    Duration::from_nanos(nanos.and_then(|nanos| nanos.parse().ok()).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::{Processes, waited};
    use std::time::Duration;

    #[test]
    fn the_second_number_counts() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("schedstat");
        assert_eq!(waited(&file), Duration::ZERO);
        std::fs::write(&file, "5 70000000001 9\n").unwrap();
        assert_eq!(waited(&file), Duration::new(70, 1));
        std::fs::write(&file, "5 x 9\n").unwrap();
        assert_eq!(waited(&file), Duration::ZERO);
    }

    #[test]
    fn waiting_grows_and_a_process_that_is_not_waits_for_nothing() {
        let kernel = rustix::process::getpid().as_raw_pid();
        let own = Processes { kernel };
        let before = own.kept_waiting();
        assert!(own.kept_waiting() >= before);
        let none = Processes { kernel: i32::MAX };
        assert_eq!(none.kept_waiting(), Duration::ZERO);
    }
}
