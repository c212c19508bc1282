//! Where a run writes to: looked at before anything runs, and refused where something
//! else stands, or where a file, not the user, says so.

use super::Task;
use super::prepare::Prepared;
use crate::failure::{Failure, Kind};
use crate::output;
use raidlab_lab::Subject;
use raidlab_model::commands;
use raidlab_store::Store;
use raidlab_store::output::Format;

impl Task {
    /// Refuses to write where something else stands.
    ///
    /// # Errors
    /// With what stands there.
    pub fn check_outputs(&self) -> Result<(), Failure> {
        let outputs = &self.outputs;
        let report = (!outputs.no_report).then_some(outputs.report.as_path());
        let report = report.map(|path| ("--report", path, Format::Page));
        let plan = self.plan_only.as_deref();
        let plan = plan.map(|path| ("--plan-only", path, Format::Plan));
        let store = ("--store", outputs.store.as_path(), Format::Store);
        let all: Vec<_> = report.into_iter().chain(plan).chain([store]).collect();
        output::check(&all)?;
        Ok(Store::check_place(&outputs.store)?)
    }

    /// The same for the files of the disks' commands.
    ///
    /// # Errors
    /// With what stands there.
    pub fn check_prepared(&self, prepared: &Prepared) -> Result<(), Failure> {
        match &self.outputs.disk_commands {
            Some(folder) => Ok(commands::check(folder, &prepared.experiments)?),
            None => Ok(()),
        }
    }

    /// Refuses targets that files name and nobody has allowed.
    ///
    /// # Errors
    /// With the target, and what would allow it.
    pub fn check_targets(&self, subjects: &[Subject]) -> Result<(), Failure> {
        for subject in subjects {
            let Some(target) = subject.own_target() else {
                continue;
            };
            let mut allowed = self.here.allowed_targets.iter();
            if !allowed.any(|allowed| allowed == target) {
                let words = format!(
                    "the file of subject `{}` names what is written to, `{target}`, which no \
                     file may do",
                    subject.name
                );
                let help = format!("`--allow-target {target}` allows it for this run");
                return Err(Failure::words(Kind::Input, words).help(help));
            }
        }
        Ok(())
    }
}
