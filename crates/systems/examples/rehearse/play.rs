//! The steps of a rehearsal, on a real machine or on a recorded one.

use raidlab_shell::{Command, Target};
use raidlab_systems::{Access, ArraySystem, Built};
use std::error::Error;
use std::fmt::Write as _;

/// A rehearsal; the states that it reads are gathered in `seen`.
pub struct Rehearsal<'a> {
    pub system: &'a dyn ArraySystem,
    pub machine: &'a dyn Target,
    pub array: &'a Built,
    /// The function that waits between two reads of the state.
    pub pause: fn(),
    pub seen: String,
}

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// The beginning of the array's name, by which leftovers are found.
pub const PREFIX: &str = "rehearsal";

impl Rehearsal<'_> {
    /// Plays all steps, to the end even after an error.
    pub fn play(&mut self) -> Result<()> {
        let outcome = self.build_and_change();
        if let Err(error) = &outcome {
            self.say(format!("error: {error}"));
        }
        self.say("destroy");
        for command in self.system.destroy(self.array) {
            self.say(format!("  # {command}"));
            if let Err(error) = self.machine.run(&command) {
                self.say(format!("  {error}"));
            }
        }
        self.find()?;
        outcome
    }

    fn say(&mut self, line: impl std::fmt::Display) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.seen, "{line}");
    }

    fn build_and_change(&mut self) -> Result<()> {
        let (system, array) = (self.system, self.array);
        self.say(format!(
            "{}, {}",
            system.title(),
            system.capacity(&array.members)
        ));
        self.steps("create", system.create(array)?)?;
        self.settle()?;
        self.write(0)?;
        self.say("settings");
        for setting in system.settings(self.machine, array)? {
            let asked = setting.asked.as_deref().unwrap_or("-");
            let verdict = if setting.applied { "" } else { "  NOT APPLIED" };
            self.say(format!(
                "  {}: asked {asked}, found {}  ({}){verdict}",
                setting.name, setting.found, setting.source
            ));
        }
        self.find()?;
        match system.fail(array, 0) {
            Err(error) => self.say(error),
            Ok(_) => self.say("a member can be made to fail"),
        }
        let commands = match system.remove(array, 1) {
            Err(error) => {
                self.say(error);
                return Ok(());
            }
            Ok(commands) => commands,
        };
        self.steps("remove", commands)?;
        self.settle()?;
        self.write(1)?;
        match system.re_add(array, 1) {
            Err(error) => self.say(error),
            Ok(commands) => {
                self.steps("re-add", commands)?;
                self.settle()?;
                self.steps("remove", system.remove(array, 1)?)?;
            }
        }
        self.steps("add", system.add(array, 1)?)?;
        self.settle()
    }

    fn find(&mut self) -> Result<()> {
        for built in self.system.find(self.machine, PREFIX)? {
            let devices: Vec<String> = built
                .members
                .into_iter()
                .map(|member| format!("{} ({})", member.device, member.size))
                .collect();
            self.say(format!(
                "found {} at `{}` on {}",
                built.name,
                built.folder,
                devices.join(" ")
            ));
        }
        Ok(())
    }

    fn steps(&mut self, what: &str, commands: Vec<Command>) -> Result<()> {
        self.say(what);
        for command in commands {
            self.say(format!("  # {command}"));
            self.machine.run(&command)?;
        }
        Ok(())
    }

    /// Waits until nothing is copied any more.
    fn settle(&mut self) -> Result<()> {
        loop {
            let status = self.system.status(self.machine, self.array)?;
            let slots = self.array.members.iter().zip(&status.members);
            let members: Vec<String> = slots
                .map(|(member, state)| {
                    let name = member.device.trim_start_matches("/dev/");
                    format!("{name}={state:?}")
                })
                .collect();
            let sync = status.sync.as_ref();
            let sync = sync.map(|sync| format!(", {:?} {:?} %", sync.kind, sync.percent));
            self.say(format!(
                "  {:?}: {}{}",
                status.health,
                members.join(" "),
                sync.unwrap_or_default()
            ));
            if status.sync.is_none() {
                return Ok(());
            }
            (self.pause)();
        }
    }

    /// Writes data, so that there is something to be copied.
    fn write(&self, part: u64) -> Result<()> {
        let mebibytes = 80;
        let (out, seek) = match self.system.access(self.array) {
            Access::Device(device) => (device, part * mebibytes),
            Access::Folder(folder) => (format!("{folder}/part{part}"), 0),
            Access::Export(uri) => return Err(format!("{uri} is no device").into()),
        };
        let words = [
            "if=/dev/urandom".to_owned(),
            format!("of={out}"),
            "bs=1M".to_owned(),
            format!("count={mebibytes}"),
            format!("seek={seek}"),
            "conv=fsync".to_owned(),
        ];
        self.machine.run(&Command::destroys("dd", words))?;
        Ok(())
    }
}
