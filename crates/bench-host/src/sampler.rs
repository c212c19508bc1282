//! The time line: the work of members and array, second by second.
//!
//! One watch reads the kernel's counters and the array's state at the same
//! moments, from its creation to its end, through jobs, waits and events. The
//! sources are files where the system has any, so that looking disturbs no
//! disk. From two frames follow rates; a change of the state is an event.

use crate::error::HostError;
use raidlab_inventory::System;
use raidlab_inventory::counters::{Activity, Counters, Snapshot};
use raidlab_lab::{ArrayLook, SyncLook};
use raidlab_shell::{Frame, Frames, Target};
use raidlab_store::{EventRecord, Operation, Scope, Series, fact::series};
use raidlab_systems::{ArrayStatus, ArraySystem, Built, Health, MemberState, SyncKind};
use raidlab_units::Nanos;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// The time between two looks at the counters.
pub(crate) const PERIOD: Duration = Duration::from_secs(1);

/// The time between two frames above which the time line shows a gap: the machine or the connection
/// to it was too busy to look.
const GAP: Duration = Duration::from_millis(2500);

/// Samples the counters of one array and its members while an experiment runs.
pub struct Sampler {
    /// The frames read from the machine; `None` once reading has ended.
    frames: Option<Box<dyn Frames>>,
    counters: Counters,
    /// How many of a frame's contents are counters; the rest describe the array.
    counter_sources: usize,
    /// The time on the experiment's clock at which the watch began.
    offset: Duration,
    /// The members' kernel names, slot by slot.
    pub(crate) members: Vec<String>,
    /// The array's own kernel name, where it is a block device.
    array: Option<String>,
    previous: Option<Snapshot>,
    /// The time of the last frame, since the watch began.
    last: Option<Duration>,
    /// The last state of the array, with its time on the experiment's clock.
    status: Option<(Duration, ArrayStatus)>,
    series: BTreeMap<(String, &'static str), Vec<(u64, f64)>>,
    events: Vec<(u64, &'static str, String)>,
    /// The states of the array that have not been drained yet.
    looks: Vec<ArrayLook>,
}

impl Sampler {
    /// Begins to sample; `begun` is the zero of the experiment's clock.
    ///
    /// # Errors
    /// When the machine cannot be sampled.
    pub fn new(
        target: &dyn Target,
        system: System,
        array_system: &dyn ArraySystem,
        built: &Built,
        array: Option<String>,
        begun: Instant,
    ) -> Result<Self, HostError> {
        let counters = Counters::of(target, system)?;
        let mut sources = counters.sources();
        let counter_sources = sources.len();
        sources.extend(array_system.sources(built));
        // Taken before the watch begins, so that no frame seems later than it is.
        let offset = begun.elapsed();
        Ok(Self {
            frames: Some(target.watch(sources, PERIOD)?),
            counters,
            counter_sources,
            offset,
            members: built
                .members
                .iter()
                .map(|member| kernel_name(&member.device).to_owned())
                .collect(),
            array,
            previous: None,
            last: None,
            status: None,
            series: BTreeMap::new(),
            events: Vec::new(),
            looks: Vec::new(),
        })
    }

    /// Processes what was read since the last call.
    ///
    /// # Errors
    /// When the machine can no longer be reached.
    pub fn poll(&mut self, system: &dyn ArraySystem, built: &Built) -> Result<(), HostError> {
        let Some(frames) = &mut self.frames else {
            return Ok(());
        };
        for frame in frames.take()? {
            self.take(&frame, system, built);
        }
        Ok(())
    }

    /// Ends the watch; frames already read are kept.
    pub fn stop(&mut self, system: &dyn ArraySystem, built: &Built) {
        // A watch that has failed has no more frames to give.
        self.poll(system, built).ok();
        self.frames = None;
    }

    /// The last state that was understood, with its time on the experiment's
    /// clock.
    pub fn status(&self) -> Option<(Duration, &ArrayStatus)> {
        let (at, status) = self.status.as_ref()?;
        Some((*at, status))
    }

    /// The machine's counters, as a list of what is counted.
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The samples since the last call, as series.
    pub(crate) fn drain_series(&mut self, scope: &Scope) -> Vec<Series> {
        std::mem::take(&mut self.series)
            .into_iter()
            .map(|((name, unit), points)| Series {
                scope: scope.clone(),
                name,
                unit: unit.to_owned(),
                points,
            })
            .collect()
    }

    /// The changes of the array's state since the last call, as events.
    pub fn drain_events(&mut self, scope: &Scope) -> Vec<EventRecord> {
        std::mem::take(&mut self.events)
            .into_iter()
            .map(|(at_ns, kind, text)| EventRecord {
                scope: scope.clone(),
                at_ns,
                kind: kind.to_owned(),
                member: None,
                text,
            })
            .collect()
    }

    /// The states of the array since the last call.
    pub(crate) fn drain_looks(&mut self) -> Vec<ArrayLook> {
        std::mem::take(&mut self.looks)
    }

    fn take(&mut self, frame: &Frame, system: &dyn ArraySystem, built: &Built) {
        let at = self.offset + frame.at;
        let at_ns = nanoseconds(at);
        if let Some(last) = self.last.replace(frame.at)
            && frame.at.saturating_sub(last) > GAP
        {
            let seconds = (frame.at - last).as_secs_f64();
            let text = format!("nothing was sampled for {seconds:.1} s");
            self.events.push((at_ns, "sampling-gap", text));
        }
        let snapshot = self.counters.parse(frame);
        if let Some(previous) = self.previous.replace(snapshot.clone()) {
            self.rates(at_ns, &Activity::between(&previous, &snapshot));
        }
        for (slot, member) in self.members.clone().iter().enumerate() {
            if let Some(degrees) = snapshot.temperatures_millicelsius.get(member) {
                let name = series::member(slot, "temperature_celsius");
                self.add(name, "celsius", at_ns, *degrees as f64 / 1000.0);
            }
        }
        let contents = frame.contents.get(self.counter_sources..).unwrap_or(&[]);
        // While members come and go a read may be torn; the next one will not be.
        let Ok(status) = system.interpret(built, contents) else {
            return;
        };
        if let Some(percent) = status.sync.and_then(|sync| sync.percent) {
            self.add(series::SYNC_PERCENT.to_owned(), "percent", at_ns, percent);
        }
        self.changed(at_ns, &status);
        self.looks.push(look(Nanos(at_ns), &status));
        self.status = Some((at, status));
    }

    fn rates(&mut self, at_ns: u64, activity: &Activity) {
        let (mut read, mut write, mut reads, mut writes) = (0.0, 0.0, 0.0, 0.0);
        for (slot, member) in self.members.clone().iter().enumerate() {
            let Some(device) = activity.devices.get(member) else {
                continue;
            };
            read += device.read_rate().0;
            write += device.write_rate().0;
            reads += device.reads_per_second();
            writes += device.writes_per_second();
            for (what, unit, value) in [
                ("read_bytes_per_second", "bytes/s", device.read_rate().0),
                ("write_bytes_per_second", "bytes/s", device.write_rate().0),
                ("read_iops", "1/s", device.reads_per_second()),
                ("write_iops", "1/s", device.writes_per_second()),
                ("busy_percent", "percent", device.busy() * 100.0),
            ] {
                self.add(series::member(slot, what), unit, at_ns, value);
            }
        }
        // An array that is no block device is measured by its members only: the sum of their work,
        // background copying and redundancy included.
        let array = self.array.as_ref();
        if let Some(device) = array.and_then(|name| activity.devices.get(name)) {
            read = device.read_rate().0;
            write = device.write_rate().0;
            reads = device.reads_per_second();
            writes = device.writes_per_second();
        }
        for (name, unit, value) in [
            (series::READ_BYTES_PER_SECOND, "bytes/s", read),
            (series::WRITE_BYTES_PER_SECOND, "bytes/s", write),
            (series::READ_IOPS, "1/s", reads),
            (series::WRITE_IOPS, "1/s", writes),
        ] {
            self.add(name.to_owned(), unit, at_ns, value);
        }
    }

    fn add(&mut self, name: String, unit: &'static str, at_ns: u64, value: f64) {
        self.series
            .entry((name, unit))
            .or_default()
            .push((at_ns, value));
    }

    fn changed(&mut self, at_ns: u64, now: &ArrayStatus) {
        let then = self.status.as_ref().map(|(_, status)| status);
        if then.is_some_and(|then| then.health != now.health) {
            let text = format!("the array is {}", health_name(now.health));
            self.events.push((at_ns, "state", text));
        }
    }
}

/// A device's name without its folder.
pub fn kernel_name(device: &str) -> &str {
    device.strip_prefix("/dev/").unwrap_or(device)
}

/// A time of an experiment in nanoseconds.
pub fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The operation of a kind of background copying.
pub(crate) const fn sync_operation(kind: SyncKind) -> Operation {
    match kind {
        SyncKind::Resync => Operation::Resync,
        SyncKind::Recovery => Operation::Recovery,
        SyncKind::Check => Operation::Check,
        SyncKind::Reshape => Operation::Reshape,
    }
}

/// The array's state in mdstat's letters: `U` for a member that is up to date.
pub fn letters(status: &ArrayStatus) -> String {
    let letter = |state: &MemberState| match state {
        MemberState::InSync => Some('U'),
        MemberState::Recovering | MemberState::Faulty | MemberState::Missing => Some('_'),
        MemberState::Spare => None,
    };
    let letters: String = status.members.iter().filter_map(letter).collect();
    format!("[{letters}]")
}

/// A state of the array in the words that all benches share. A change since the previous state
/// happened somewhere between the two.
fn look(at: Nanos, status: &ArrayStatus) -> ArrayLook {
    ArrayLook {
        at,
        is_exact: false,
        letters: letters(status),
        sync: status.sync.map(|sync| SyncLook {
            op: sync_operation(sync.kind),
            percent: sync.percent,
            member: sync.member,
        }),
        leaped: Nanos::ZERO,
    }
}

/// A health as one word.
pub(crate) const fn health_name(health: Health) -> &'static str {
    match health {
        Health::Optimal => "optimal",
        Health::Degraded => "degraded",
        Health::Failed => "failed",
    }
}

#[cfg(test)]
mod tests;
