//! The guest's messages, in the words of the experiment outside: the guest calls itself
//! `localhost`, knows no models of its disks, and thinks that it is a real machine.

use crate::agent::{MACHINE, devices};
use crate::devices::Report;
use crate::faults;
use crate::messages::Message;
use raidlab_bench_model::Unfitted;
use raidlab_bench_model::presets::{self, LoadPresetError};
use raidlab_lab::{Experiment, Files, Observer};
use raidlab_store::fact::{self, disk_property as property};
use raidlab_store::{Cell, CellResult, Measurement, Observation, Records, Role};
use raidlab_uml_calendar::ScheduledFault;

/// The experiment in whose name the guest's messages are passed on.
#[derive(Debug)]
pub(crate) struct Told {
    experiment: Experiment,
    unfitted: Unfitted,
    /// Whether computing takes time in the guest.
    has_processor: bool,
}

impl Told {
    pub(crate) fn new(experiment: &Experiment, unfitted: Unfitted, has_processor: bool) -> Self {
        Self {
            experiment: experiment.clone(),
            unfitted,
            has_processor,
        }
    }

    /// The facts that tell which disks nobody fitted the model to. A run of syncs alone has no
    /// figures with bands, by which they could be known.
    ///
    /// # Errors
    /// A preset that cannot be read.
    pub(crate) fn of_disks(
        experiment: &Experiment,
        files: &Files,
    ) -> Result<Vec<Observation>, LoadPresetError> {
        let scope = experiment.scope();
        let mut observations = Vec::new();
        for (device, name) in devices(experiment.disks.len())
            .iter()
            .zip(&experiment.disks)
        {
            let device = device.trim_start_matches("/dev/");
            let preset = presets::load_from(files, name)?;
            let fit = preset.set_beside(&experiment.fit);
            let fitted = preset.is_fitted(fit).ok();
            let fitted = fitted.map(|fitted| if fitted { fact::TRUE } else { fact::FALSE });
            let known = [
                (property::MODEL, Some(preset.name.as_str())),
                (property::FITTED, fitted),
            ];
            for (property, value) in known {
                let name = fact::disk(device, property);
                let fact = |value| Observation::new(&scope, name, value, "", "the modelled disk");
                observations.extend(value.map(fact));
            }
        }
        Ok(observations)
    }

    /// Passes a message on, in the experiment's own words.
    pub(crate) fn pass_on(&self, message: Message, observer: &mut dyn Observer) {
        match message {
            Message::Progress(progress) => observer.progress(progress),
            Message::Look(look) => observer.look(look),
            Message::Records(records) => observer.record(self.records(records)),
            Message::Cell(result) => {
                observer.cell(CellResult {
                    cell: self.cell(result.cell),
                    rows: result.rows.into_iter().map(|row| self.row(row)).collect(),
                    records: self.records(result.records),
                });
            }
            Message::Ended(_) => {}
        }
    }

    /// The records of the disks' counters at the end, and of the `faults` that never came.
    pub(crate) fn report(&self, report: &Report, faults: &[(usize, ScheduledFault)]) -> Records {
        let scope = self.experiment.scope();
        let mut observations = Vec::new();
        for (device, facts) in devices(report.disks().len()).iter().zip(report.disks()) {
            let device = device.trim_start_matches("/dev/");
            for (name, value, unit) in facts {
                let name = format!("disk.{device}.modelled_{name}");
                let source = "the modelled disk";
                observations.push(Observation::new(&scope, name, value, unit, source));
            }
        }
        observations.push(Observation::new(
            &scope,
            "guest.trace_digest",
            format!("{:016x}", report.digest()),
            "",
            "every command of every modelled disk, with its time",
        ));
        let disks = report.disks().len();
        Records {
            observations,
            events: faults::missed(faults, disks, report.now(), &scope),
            ..Records::default()
        }
    }

    fn cell(&self, cell: Cell) -> Cell {
        Cell {
            host: self.experiment.host.clone(),
            fit: self.experiment.fit.clone(),
            ..cell
        }
    }

    fn row(&self, mut row: Measurement) -> Measurement {
        "kernel".clone_into(&mut row.bench);
        row.host.clone_from(&self.experiment.host);
        row.fit.clone_from(&self.experiment.fit);
        if !self.has_processor {
            // Computing takes no time in the guest: a tool's share of it says nothing.
            row.cpu_percent = None;
        }
        // The code is the real one, the disks are not.
        row.role = Role::Predicted;
        for (member, preset) in row.members.iter_mut().zip(&self.experiment.disks) {
            member.model.clone_from(preset);
        }
        row.disk_band = self.unfitted.band_in(&self.experiment, &row);
        row
    }

    fn records(&self, mut records: Records) -> Records {
        let scopes = records
            .observations
            .iter_mut()
            .map(|one| &mut one.scope)
            .chain(records.commands.iter_mut().map(|one| &mut one.scope))
            .chain(records.events.iter_mut().map(|one| &mut one.scope))
            .chain(records.series.iter_mut().map(|one| &mut one.scope));
        for scope in scopes {
            if scope.host == MACHINE {
                scope.host.clone_from(&self.experiment.host);
            }
        }
        for setting in &mut records.settings {
            setting.scope = setting.scope.replace(MACHINE, &self.experiment.host);
        }
        records
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use raidlab_lab::{Choices, Suite};

    #[test]
    fn disks_that_nobody_fitted_are_told() {
        let suite = Suite::load("quick").expect("built in");
        let choices = Choices {
            fits: vec!["strict".to_owned()],
            ..Choices::default()
        };
        let mut experiment = suite.experiments(&suite.subjects, &choices).remove(0);
        experiment.disks = vec!["wd4000fyyz".to_owned(), "sp1614n".to_owned()];
        let facts = Told::of_disks(&experiment, &Files::default()).expect("built in");
        let facts = facts
            .iter()
            .map(|one| (one.name.as_str(), one.value.as_str()));
        let all = [
            ("disk.vda.model", "wd4000fyyz"),
            ("disk.vda.fitted", "true"),
            ("disk.vdb.model", "sp1614n"),
            ("disk.vdb.fitted", "false"),
        ];
        assert_eq!(facts.collect::<Vec<_>>(), all);
    }

    #[test]
    fn a_share_of_the_processor_is_told_where_there_is_one() {
        let suite = Suite::load("quick").expect("built in");
        let choices = Choices {
            fits: vec!["strict".to_owned()],
            ..Choices::default()
        };
        let experiment = suite.experiments(&suite.subjects, &choices).remove(0);
        let row = |has_processor| {
            let told = Told::new(&experiment, Unfitted::default(), has_processor);
            told.row(Measurement {
                cpu_percent: Some(3.0),
                ..Measurement::blank("host")
            })
        };
        assert_eq!(row(true).cpu_percent, Some(3.0));
        let row = row(false);
        assert_eq!((row.bench.as_str(), row.cpu_percent), ("kernel", None));
        assert_eq!((row.fit.as_str(), row.role), ("strict", Role::Predicted));
    }
}
