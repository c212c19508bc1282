//! The processors that experiments run on.
//!
//! A guest and the clock's thread run by turns, never at the same time, so the
//! two belong on one processor: on two, each turn would wake the other one up.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::sync::{Mutex, PoisonError};

/// The processors that this process may use, each with the number of experiments on it.
#[derive(Debug)]
pub(crate) struct Processors {
    used: Mutex<Vec<(usize, usize)>>,
}

impl Processors {
    /// The processors that this process may use.
    pub(crate) fn of_this_process() -> Self {
        let numbers = match sched_getaffinity(None) {
            Ok(set) => (0..CpuSet::MAX_CPU)
                .filter(|number| set.is_set(*number))
                .collect(),
            // Without this everything runs wherever the system puts it.
            Err(_) => Vec::new(),
        };
        Self::new(numbers)
    }

    fn new(numbers: Vec<usize>) -> Self {
        Self {
            used: Mutex::new(numbers.into_iter().map(|number| (number, 0)).collect()),
        }
    }

    /// Takes the processor with the fewest experiments on it, the last of equals: the first one has
    /// most other work.
    pub(crate) fn take(&self) -> Processor<'_> {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let least = used.iter_mut().rev().min_by_key(|(_, count)| *count);
        let number = least.map(|(number, count)| {
            *count += 1;
            *number
        });
        Processor {
            number,
            processors: self,
        }
    }
}

/// A processor that an experiment runs on, until it is dropped.
#[derive(Debug)]
pub(crate) struct Processor<'a> {
    number: Option<usize>,
    processors: &'a Processors,
}

impl Processor<'_> {
    /// The number of the processor; `None` where it is not known.
    pub(crate) const fn number(&self) -> Option<usize> {
        self.number
    }
}

impl Drop for Processor<'_> {
    fn drop(&mut self) {
        let used = &self.processors.used;
        let mut used = used.lock().unwrap_or_else(PoisonError::into_inner);
        let own = used
            .iter_mut()
            .find(|(number, _)| Some(*number) == self.number);
        if let Some((_, count)) = own {
            *count -= 1;
        }
    }
}

/// Keeps the calling thread on a processor.
pub(crate) fn stay_on(processor: Option<usize>) {
    if let Some(number) = processor {
        let mut set = CpuSet::new();
        set.set(number);
        // A refusal only makes everything slower.
        let _ = sched_setaffinity(None, &set);
    }
}

/// The fact that says which kind of processor a guest ran on.
pub const PROCESSOR: &str = "guest.processor";

/// The features by which the libraries in a guest choose their code: the level of the processor's
/// instructions (x86-64 psABI, table 3.1) and its model. `None` where the system does not say.
pub(crate) fn kind() -> Option<String> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    kind_in(&text)
}

/// The same features, from the text of `/proc/cpuinfo`.
fn kind_in(text: &str) -> Option<String> {
    const LEVELS: [(&str, &[&str]); 3] = [
        ("x86-64-v2", &["cx16", "popcnt", "sse4_2", "ssse3"]),
        ("x86-64-v3", &["avx2", "bmi2", "f16c", "fma", "movbe"]),
        (
            "x86-64-v4",
            &["avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl"],
        ),
    ];
    let field = |name: &str| {
        let mut lines = text.lines().filter_map(|line| line.split_once(':'));
        lines
            .find(|(key, _)| key.trim() == name)
            .map(|(_, value)| value.trim())
    };
    let flags: Vec<&str> = field("flags")?.split(' ').collect();
    let has = |(_, needs): &&(&str, &[&str])| needs.iter().all(|flag| flags.contains(flag));
    let level = LEVELS.iter().take_while(has).last();
    let level = level.map_or("x86-64-v1", |(name, _)| name);
    Some(format!("{level}, {}", field("model name")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn experiments_are_spread_over_the_processors() {
        let processors = Processors::new(vec![2, 5]);
        let first = processors.take();
        let second = processors.take();
        let third = processors.take();
        let numbers = [&first, &second, &third].map(|processor| processor.number());
        assert_eq!(numbers, [Some(5), Some(2), Some(5)]);
        drop(second);
        assert_eq!(processors.take().number(), Some(2));
        assert_eq!(Processors::new(Vec::new()).take().number(), None);
    }

    #[test]
    fn a_kind_of_processor_is_its_level_and_model() {
        let of = |flags: &str| kind_in(&format!("model name\t: AMD EPYC\nflags\t\t: {flags}\n"));
        let (v2, v3) = ("fpu cx16 popcnt sse4_2 ssse3", "avx2 bmi2 f16c fma movbe");
        let v4 = "avx512bw avx512cd avx512dq avx512f avx512vl";
        for (flags, level) in [
            ("fpu sse2".to_owned(), "x86-64-v1"),
            (v2.to_owned(), "x86-64-v2"),
            (format!("{v2} {v3}"), "x86-64-v3"),
            (format!("{v2} {v3} {v4}"), "x86-64-v4"),
            (format!("{v2} {v4}"), "x86-64-v2"),
        ] {
            assert_eq!(of(&flags), Some(format!("{level}, AMD EPYC")));
        }
        assert_eq!(kind_in("processor\t: 0\n"), None);
    }

    #[test]
    fn a_thread_stays_where_it_is_put() {
        let own = Processors::of_this_process().take().number();
        let seen = std::thread::spawn(move || {
            stay_on(own);
            sched_getaffinity(None).map(|set| set.count())
        });
        if own.is_some() {
            assert_eq!(seen.join().expect("no panic"), Ok(1));
        }
    }
}
