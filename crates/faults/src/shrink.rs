//! The search for a smaller script that still breaks the same promise.
//!
//! Steps are dropped, first in halves, then in ever smaller runs, as long as the rest breaks a
//! promise of the same kind (delta debugging, Zeller 1999). Then the options are made plainer, one
//! by one. Faults of a step that the budget does not allow any more do nothing, so every sub-list
//! of steps is a script.

use crate::medium::Medium;
use crate::options::Options;
use crate::run::{Outcome, run_with};
use crate::script::Step;
use raidlab_serve::export::ErrorCode;

/// Returns the smallest script found within `most_runs` runs, with its trace.
#[must_use]
pub fn shrink(failing: &Outcome, most_runs: usize) -> Outcome {
    let mut shrinker = Shrinker {
        failing,
        runs_left: most_runs,
        options: failing.options.clone(),
        script: failing.script.clone(),
    };
    shrinker.drop_steps();
    shrinker.plain_options();
    shrinker.drop_steps();
    shrinker.run(&shrinker.options, &shrinker.script, true)
}

struct Shrinker<'a> {
    failing: &'a Outcome,
    runs_left: usize,
    options: Options,
    script: Vec<Step>,
}

impl Shrinker<'_> {
    fn run(&self, options: &Options, script: &[Step], trace: bool) -> Outcome {
        run_with(
            options.clone(),
            Some(script.to_vec()),
            self.failing.seed,
            trace,
        )
    }

    fn still_fails(&mut self, options: &Options, script: &[Step]) -> bool {
        if self.runs_left == 0 {
            return false;
        }
        self.runs_left -= 1;
        let violation = self.run(options, script, false).violation;
        let kind = self
            .failing
            .violation
            .as_ref()
            .map(|violation| violation.kind);
        // With fewer members the array is smaller: a request beyond its end fails rightly.
        let beyond_the_end = ErrorCode::Invalid.to_string();
        violation.is_some_and(|violation| {
            Some(violation.kind) == kind && !violation.detail.ends_with(&beyond_the_end)
        })
    }

    fn drop_steps(&mut self) {
        let mut length = self.script.len().div_ceil(2).max(1);
        loop {
            let mut at = 0;
            while at < self.script.len() {
                let end = (at + length).min(self.script.len());
                let mut shorter = self.script.clone();
                shorter.drain(at..end);
                if self.still_fails(&self.options.clone(), &shorter) {
                    self.script = shorter;
                } else {
                    at = end;
                }
            }
            if length == 1 {
                return;
            }
            length = length.div_ceil(2);
        }
    }

    fn plain_options(&mut self) {
        let plainer: [fn(&mut Options); 12] = [
            |options| options.safe_mode_ms = 200,
            |options| options.short_log = false,
            |options| options.medium = Medium::Drawn,
            |options| options.log = false,
            |options| options.bitmap_chunk = None,
            |options| options.assume_clean = true,
            |options| options.write_through = true,
            |options| options.tear_physical = false,
            |options| options.latency_high_ns = options.latency_low_ns,
            |options| options.depth = 1,
            |options| options.overlaps = false,
            |options| options.members -= 1,
        ];
        for change in plainer {
            let mut options = self.options.clone();
            change(&mut options);
            let script = self.script.clone();
            if options != self.options && self.still_fails(&options, &script) {
                self.options = options;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Filter;
    use crate::script::Action;

    /// An array of fewer members refuses what lies beyond its end, which is no smaller form
    /// of an error within the budget.
    #[test]
    fn a_request_beyond_the_end_is_no_smaller_failure() {
        let beyond = Action::Read {
            start: 1_000_000,
            count: 1,
        };
        let within = Action::Read { start: 0, count: 1 };
        let script = [within, beyond].map(|action| Step {
            after_ns: 0,
            action,
        });
        let options = Options::draw(1, &Filter::default());
        let failing = run_with(options, Some(script.to_vec()), 1, false);
        let violation = failing.violation.as_ref().map(|violation| violation.kind);
        assert_eq!(violation, Some("error within the budget"));
        assert_eq!(shrink(&failing, 100).script, failing.script);
    }
}
