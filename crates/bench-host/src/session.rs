//! One experiment on a machine: the array built, used, and taken down.
//!
//! Whatever happens, what was built is taken down ([`Standing`]): at the end, after an error, when
//! the run is interrupted, and when the thread panics. Only a killed process leaves something
//! behind, and [`cleanup`](crate::cleanup) finds that.

use crate::error::HostError;
use crate::machine::{Machine, PREFIX};
use crate::marks::Marks;
use crate::place::Place;
use crate::queues::queues;
use crate::sampler::{Sampler, kernel_name, nanoseconds};
use crate::standing::{Standing, mounts, run_patiently};
use raidlab_inventory::Inventory;
use raidlab_inventory::counters::Foreign;
use raidlab_lab::{CHECK_IN_WORDS, Deeds, Event, EventKind, Experiment};
use raidlab_shell::{Answer, Claim, Command, Effect, Exchange, Observed, Request, Target};
use raidlab_store::{CommandRecord, EventRecord, Records, Scope};
use raidlab_systems::{
    Access, ArraySpec, ArrayStatus, ArraySystem, Built, FileSystemSpec, Health, MemberState,
    SystemError,
};
use std::fs::File;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The time that the device of a stopped array may take to disappear.
const GOING: Duration = Duration::from_secs(5);

/// The commands that ran, each with its time.
type Journal = Arc<Mutex<Vec<CommandRecord>>>;

/// An experiment in progress on a machine.
pub struct Session<'a> {
    pub machine: &'a Machine,
    pub experiment: &'a Experiment,
    pub spec: &'a ArraySpec,
    pub target: Observed<Arc<dyn Target>>,
    pub built: Built,
    pub place: Place,
    pub sampler: Sampler,
    /// The traffic of the machine's other disks.
    pub foreign: Foreign,
    begun: Instant,
    journal: Journal,
    events: Vec<EventRecord>,
    /// The suite's changes to the members.
    pub deeds: Deeds,
    /// The time at which the last event was over.
    changed: Duration,
    standing: Standing<'a>,
    /// The claims on the members, released after the array is taken down: until the end its
    /// devices' names mean the same disks.
    _claims: Claims,
}

/// The claims on this machine's members, held from the last check to the end.
enum Claims {
    /// The members are open for this program alone: no other program can use them.
    Exclusive(Vec<Claim>),
    /// The array's own tools claim the members; no other disk can get their names.
    Shared { _held: Vec<File> },
}

impl Claims {
    /// Prepares a command of the build: `wipefs` runs while the disks are held, and is forced, as
    /// it refuses a held disk, even one held by us. Any other command claims the disks itself, so
    /// they are released for it.
    fn admit(&mut self, mut command: Command) -> Result<Command, HostError> {
        match self {
            Self::Exclusive(claims) if !claims.is_empty() && command.program == "wipefs" => {
                command.arguments.insert(0, "--force".to_owned());
            }
            Self::Exclusive(_) => self.relax()?,
            Self::Shared { .. } => {}
        }
        Ok(command)
    }

    fn relax(&mut self) -> Result<(), HostError> {
        if let Self::Exclusive(claims) = self {
            let files = std::mem::take(claims).into_iter().map(Claim::relax);
            let held = files.collect::<std::io::Result<_>>();
            let held = held.map_err(|error| HostError::Unsuitable {
                what: format!("a disk has gone: {error}"),
            })?;
            *self = Self::Shared { _held: held };
        }
        Ok(())
    }
}

/// Checks that nothing of another run, or of a killed one, is on the machine.
fn check_nothing_is_left(machine: &Machine, spec: &ArraySpec) -> Result<(), HostError> {
    let own = format!("{PREFIX}0");
    let left = spec.find(machine.target(), PREFIX)?;
    let what = if left.iter().any(|built| built.name == own) {
        format!("array `{own}` is there")
    } else {
        let mounted = mounts(machine.target(), machine.system(), machine.folder())?;
        match mounted.first() {
            Some(folder) => format!("something is mounted on {folder}"),
            None => return Ok(()),
        }
    };
    Err(HostError::Taken {
        machine: machine.name().to_owned(),
        what: format!(
            "{what}: another run goes on, or one was killed and `raidlab cleanup` removes it"
        ),
    })
}

/// Checks that no foreign object has a name that our array is going to have: the build would fail,
/// and taking down by that name would remove it.
fn check_names_are_free(
    target: &dyn Target,
    system: &dyn ArraySystem,
    built: &Built,
) -> Result<(), HostError> {
    // The previous array may have been stopped just now.
    let deadline = Instant::now() + GOING;
    for path in system.own_paths(built) {
        while target.resolve(&path).is_ok() {
            if Instant::now() >= deadline {
                return Err(HostError::Taken {
                    machine: target.name().to_owned(),
                    what: format!("{path} is there, and is not of this run"),
                });
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
    Ok(())
}

impl<'a> Session<'a> {
    /// Builds the experiment's array and file system.
    ///
    /// # Errors
    /// When a command fails; what was built is taken down again.
    pub fn begin(machine: &'a Machine, experiment: &'a Experiment) -> Result<Self, HostError> {
        let spec = spec(experiment)?;
        check_nothing_is_left(machine, spec)?;
        let mut claims = Claims::Exclusive(machine.check_disks(&experiment.disks)?);
        let begun = Instant::now();
        let journal: Journal = Arc::default();
        let keeper = Arc::clone(&journal);
        let target = Observed::new(Arc::clone(machine.target()), move |exchange| {
            if let Some(record) = record(exchange) {
                keeper
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(record);
            }
        });
        let built = built(machine, experiment)?;
        let system = &**spec;
        let create = system.create(&built)?;
        check_names_are_free(&target, system, &built)?;
        let queues = queues(machine, experiment, &built)?;
        let standing = Standing {
            machine,
            experiment,
            system,
            target: target.clone(),
            built: built.clone(),
            restore: queues.restore,
            down: false,
        };
        Marks::keep(&target, machine.system(), &queues.before)?;
        for command in queues.set {
            target.run(&command)?;
        }
        for command in create {
            target.run(&claims.admit(command)?)?;
        }
        claims.relax()?;
        let array = match system.access(&built) {
            Access::Device(device) => {
                appear(&target, &device)?;
                Some(kernel_device(&target, &device))
            }
            Access::Folder(_) | Access::Export(_) => None,
        };
        let place = mount(machine, experiment, &target, system, &built)?;
        let members = built.members.iter().map(|member| member.device.clone());
        // No file shows that a ZFS volume's device lies above the members.
        let above = array.iter().map(|name| format!("/dev/{name}"));
        let own: Vec<String> = members.chain(above).collect();
        let sampler = Sampler::new(&target, machine.system(), system, &built, array, begun)?;
        let foreign = Foreign::of(&Inventory::of(&target)?, &own);
        Ok(Self {
            machine,
            experiment,
            spec,
            target,
            built,
            place,
            sampler,
            foreign,
            begun,
            journal,
            events: Vec::new(),
            deeds: Deeds::default(),
            changed: Duration::ZERO,
            standing,
            _claims: claims,
        })
    }

    /// The time since the experiment began.
    pub fn now(&self) -> Duration {
        self.begun.elapsed()
    }

    /// The system that builds, changes and takes down the array under test.
    pub fn system(&self) -> &'a dyn ArraySystem {
        &**self.spec
    }

    /// The scope of the whole experiment, for records.
    pub fn scope(&self) -> Scope {
        Scope {
            host: self.machine.name().to_owned(),
            ..self.experiment.scope()
        }
    }

    /// Records that something happened.
    pub fn note(&mut self, kind: &str, member: Option<u32>, text: String) {
        let event = EventRecord {
            scope: self.scope(),
            at_ns: nanoseconds(self.now()),
            kind: kind.to_owned(),
            member,
            text,
        };
        self.events.push(event);
    }

    /// Processes what the sampler has read.
    ///
    /// # Errors
    /// When the machine can no longer be reached.
    pub fn poll(&mut self) -> Result<(), HostError> {
        let system = self.system();
        self.sampler.poll(system, &self.built)
    }

    /// All records since the last call, in `scope`.
    pub fn drain(&mut self, scope: &Scope) -> Records {
        let whole = self.scope();
        let mut events = std::mem::take(&mut self.events);
        events.extend(self.sampler.drain_events(&whole));
        events.sort_by_key(|event| event.at_ns);
        let mut commands =
            std::mem::take(&mut *self.journal.lock().unwrap_or_else(PoisonError::into_inner));
        for command in &mut commands {
            command.scope = scope.clone();
        }
        Records {
            commands,
            events,
            series: self.sampler.drain_series(&whole),
            ..Records::default()
        }
    }

    /// Carries out an event of a member.
    ///
    /// # Errors
    /// When the array cannot do it, or a command fails.
    pub fn event(&mut self, event: Event) -> Result<(), HostError> {
        let commands = event_commands(event, self.system(), &mut self.built)?;
        let text = match event.kind {
            EventKind::Fail => "fails",
            EventKind::Remove => "is taken out",
            EventKind::Insert => "is put back as if new",
            EventKind::ReAdd => "is put back as it was",
        };
        let member = self.built.members.get(usize::from(event.member));
        let device = member.map_or("", |member| &member.device);
        let text = format!("member {} ({device}) {text}", event.member);
        self.note(event.kind.name(), Some(u32::from(event.member)), text);
        self.deeds.happens(event);
        self.carry_out(&commands)
    }

    fn carry_out(&mut self, commands: &[Command]) -> Result<(), HostError> {
        for command in commands {
            run_patiently(&self.target, command)?;
        }
        self.changed = self.now();
        Ok(())
    }

    /// Begins a check of the whole array.
    ///
    /// # Errors
    /// When the array cannot do it, or a command fails.
    pub fn check_all(&mut self) -> Result<(), HostError> {
        let commands = self.system().check_all(&self.built)?;
        self.note("check", None, CHECK_IN_WORDS.to_owned());
        self.deeds.checks();
        self.carry_out(&commands)
    }

    /// The array's state after `since` and after the last event; `None` where it has not
    /// been read since.
    pub(crate) fn status_since(&self, since: Duration) -> Option<&ArrayStatus> {
        let (at, status) = self.sampler.status()?;
        (at >= since.max(self.changed)).then_some(status)
    }

    /// Whether nothing is being copied or about to be: every member is up to date, except those
    /// that the suite has taken out, and no spare waits to replace them.
    pub fn settled(&self, status: &ArrayStatus) -> bool {
        let mut states = status.members.iter().copied();
        let spare = states.clone().any(|state| state == MemberState::Spare);
        let behind = states.any(|state| state == MemberState::Recovering);
        let gone = status
            .members
            .iter()
            .filter(|state| matches!(state, MemberState::Faulty | MemberState::Missing))
            .count();
        let whole = status.health == Health::Optimal;
        let away = self.deeds.away();
        let on_purpose =
            away > 0 && status.health == Health::Degraded && gone <= away && !spare && !behind;
        status.sync.is_none() && (whole || on_purpose)
    }

    /// Takes everything down.
    ///
    /// # Errors
    /// When something is left afterwards.
    pub fn end(&mut self) -> Result<(), HostError> {
        // The sampler's looks would keep a file system busy.
        self.sampler.stop(&**self.spec, &self.built);
        self.standing.take_down()
    }
}

/// The specification by which the experiment's subject is built.
///
/// # Errors
/// When only the model knows the subject.
pub fn spec(experiment: &Experiment) -> Result<&ArraySpec, HostError> {
    let subject = &experiment.subject;
    subject.build.as_ref().ok_or_else(|| HostError::Unsuitable {
        what: format!(
            "subject `{}` is modelled only: its file has no [build] table",
            subject.name
        ),
    })
}

/// The array with its members, before it is built.
///
/// # Errors
/// When a disk is not among the machine's.
pub fn built(machine: &Machine, experiment: &Experiment) -> Result<Built, HostError> {
    let name = format!("{PREFIX}0");
    Ok(Built {
        folder: format!("{}/{name}", machine.folder()),
        name,
        members: machine.members(&experiment.disks)?,
    })
}

/// Waits for a device: `/dev/mirror/x` and `/dev/zvol/x` appear a moment after the end of the
/// command that makes them.
fn appear(target: &dyn Target, device: &str) -> Result<(), HostError> {
    const LIMIT_S: u64 = 20;
    let deadline = Instant::now() + Duration::from_secs(LIMIT_S);
    while target.resolve(device).is_err() {
        if Instant::now() >= deadline {
            // An unreachable machine fails here, and is not taken for one that lacks a device.
            target.output(&Command::reads("true", [""; 0]))?;
            return Err(HostError::Late {
                what: format!("{device} did not appear"),
                seconds: LIMIT_S,
            });
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

/// Makes and mounts the file system, if the experiment has one.
fn mount(
    machine: &Machine,
    experiment: &Experiment,
    target: &dyn Target,
    system: &dyn ArraySystem,
    built: &Built,
) -> Result<Place, HostError> {
    match (system.access(built), &experiment.filesystem) {
        (Access::Device(device), None) => Place::device(target, machine.system(), device),
        (Access::Device(device), Some(filesystem)) => {
            for command in make_and_mount(filesystem, &device, built)? {
                target.run(&command)?;
            }
            Place::folder(target, built.folder.clone())
        }
        (Access::Folder(folder), None) => Place::folder(target, folder),
        (Access::Export(uri), None) => Err(HostError::Unsuitable {
            what: format!("no tool here runs on {uri}"),
        }),
        (Access::Folder(_) | Access::Export(_), Some(filesystem)) => Err(HostError::Unsuitable {
            what: format!(
                "{} gives no device that {} could be made on",
                system.title(),
                filesystem.label()
            ),
        }),
    }
}

/// The commands that make a file system and mount it. On a member itself it has the array's name as
/// its label, as nothing else tells afterwards whose it is.
///
/// # Errors
/// When its options do not go together.
pub(crate) fn make_and_mount(
    filesystem: &FileSystemSpec,
    device: &str,
    built: &Built,
) -> Result<Vec<Command>, HostError> {
    let label = built.has(device).then_some(&*built.name);
    let mut commands = filesystem.make(device, label)?;
    commands.extend(filesystem.mount(device, &built.folder));
    Ok(commands)
}

/// The commands of an event, after which the member is away or present.
pub(crate) fn event_commands(
    event: Event,
    system: &dyn ArraySystem,
    built: &mut Built,
) -> Result<Vec<Command>, SystemError> {
    let slot = usize::from(event.member);
    let commands = match event.kind {
        EventKind::Fail => system.fail(built, slot),
        EventKind::Remove => system.remove(built, slot),
        EventKind::Insert => system.add(built, slot),
        EventKind::ReAdd => system.re_add(built, slot),
    };
    built.set_away(slot, event.kind == EventKind::Remove);
    commands
}

/// The kernel's name of a device that may be a link: `/dev/zvol/p/v` is `zd0`.
fn kernel_device(target: &dyn Target, device: &str) -> String {
    let resolved = target.resolve(device);
    kernel_name(resolved.as_deref().unwrap_or(device)).to_owned()
}

/// The record of an exchange, kept for commands that changed something, and for those that failed.
fn record(exchange: &Exchange) -> Option<CommandRecord> {
    let (Request::Command(command), Answer::Output(output)) = (&exchange.request, &exchange.answer)
    else {
        return None;
    };
    let failed = output
        .code
        .is_none_or(|code| !command.success.contains(&code));
    if command.effect == Effect::Reads && !failed {
        return None;
    }
    Some(CommandRecord {
        scope: Scope::default(),
        at_ns: nanoseconds(exchange.at.saturating_sub(output.took)),
        command: command.to_string(),
        code: output.code,
        took_ns: nanoseconds(output.took),
        stdout: output.stdout.clone(),
        stderr: output.stderr.clone(),
    })
}
