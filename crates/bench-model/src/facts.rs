//! The model's facts beside its rows, in the store's vocabulary, for the rules that judge them: the
//! same facts that a real machine's bench reads from the machine.

use crate::bands::{DIRECTIONS, rate_limit};
use crate::build::{Ablation, Plan};
use crate::row::percent;
use raidlab_lab::{Asked, Deeds, Experiment, PlannedJob, SubjectKind, Work, ZfsCompression};
use raidlab_sim::{JobResult, ProcessorUse};
use raidlab_store::fact::{self, disk_property as property, lock_part, outcome};
use raidlab_store::{Observation, Scope};
use raidlab_systems::ArraySpec;
use raidlab_systems::array::md::Bitmap;
use raidlab_units::{Bytes, Nanos, SECTOR_BYTES};
use raidlab_workload::{ArrivalProcess, Engine, JobGroup};
use std::collections::BTreeMap;

/// Facts of one scope as they are made.
struct Facts {
    scope: Scope,
    all: Vec<Observation>,
}

impl Facts {
    fn add(&mut self, name: impl Into<String>, value: impl ToString, unit: &str) {
        let one = Observation::new(&self.scope, name, value, unit, "the model");
        self.all.push(one);
    }
}

const fn truth(holds: bool) -> &'static str {
    if holds { fact::TRUE } else { fact::FALSE }
}

/// The facts of the whole experiment: the machine, the array, its disks.
pub(crate) fn of_subject(plan: &Plan, experiment: &Experiment) -> Vec<Observation> {
    let scope = Scope {
        subject: experiment.subject.name.clone(),
        ..Scope::default()
    };
    let mut facts = Facts {
        scope,
        all: Vec::new(),
    };
    facts.add(fact::MEMORY_TOTAL_BYTES, plan.memory().0, "bytes");
    facts.add(fact::ARRAY_CAPACITY_BYTES, plan.capacity().0, "bytes");
    // Modelled arrays keep their data as given, byte for byte, on bare devices; a pool
    // may compress it.
    let zfs = experiment.subject.zfs.as_ref();
    let compression = zfs.map_or(ZfsCompression::Off, |zfs| zfs.compression);
    facts.add(fact::COMPRESSION, compression, "");
    facts.add(fact::DEDUPLICATION, "off", "");
    facts.add(fact::FILESYSTEM_LAZY, fact::FALSE, "");
    if let Some(processor) = &plan.processor {
        facts.add(fact::CPU_PRESET, &processor.name, "");
        facts.add(fact::CPU_COUNT, processor.numbers.cores, "");
    }
    of_array(&mut facts, experiment);
    of_members(&mut facts, plan, experiment);
    facts.all
}

fn of_array(facts: &mut Facts, experiment: &Experiment) {
    let subject = &experiment.subject;
    let count = experiment.disks.len();
    let (system, level) = match (&subject.build, subject.kind) {
        (Some(build), _) => (Some(build.name()), build.level()),
        (None, SubjectKind::Disk) => (Some("disk"), Some("single")),
        (None, SubjectKind::ZfsMirror) => (Some("zfs"), Some("mirror")),
        (None, SubjectKind::Mirror) => (None, Some("mirror")),
        (None, SubjectKind::Array | SubjectKind::System) => (None, None),
    };
    if let Some(system) = system {
        facts.add(fact::ARRAY_SYSTEM, system, "");
    }
    if let Some(level) = level {
        facts.add(fact::ARRAY_LEVEL, level, "");
    }
    if let Some(build) = &subject.build {
        if let Some(written) = build.member_bytes_per_byte(count) {
            facts.add(fact::ARRAY_MEMBER_BYTES_PER_BYTE, written, "");
        }
        let copies = truth(build.copies_on_write());
        facts.add(fact::ARRAY_COPIES_ON_WRITE, copies, "");
        if let ArraySpec::Md(md) = build {
            let bitmap = match md.bitmap {
                Some(Bitmap::Internal) => "internal",
                Some(Bitmap::None) => "none",
                None => "default",
            };
            facts.add(fact::ARRAY_BITMAP, bitmap, "");
            if let Some(chunk) = md.chunk {
                facts.add(fact::ARRAY_CHUNK_BYTES, chunk.0, "bytes");
                if let Some(data) = build.data_members(count) {
                    let stripe = chunk.0.saturating_mul(data);
                    facts.add(fact::ARRAY_STRIPE_BYTES, stripe, "bytes");
                }
            }
        }
        for slot in 0..count {
            if let Some(role) = build.role(count, slot) {
                facts.add(fact::member_role(slot), role, "");
            }
        }
    }
    if let Some(zfs) = &subject.zfs {
        facts.add(fact::ARRAY_RECORD_BYTES, zfs.volume_block.0, "bytes");
        let block = fact::setting("volblocksize", outcome::FOUND);
        facts.add(block, zfs.volume_block.0, "bytes");
        facts.add(fact::setting("ashift", outcome::FOUND), zfs.ashift, "");
        if zfs.compression != ZfsCompression::Off {
            let ratio = zfs.volume_block.0 as f64 / zfs.placed_block().0 as f64;
            facts.add(fact::COMPRESS_RATIO, format!("{ratio:.2}"), "");
        }
        facts.add(fact::setting("primarycache", outcome::FOUND), "all", "");
    }
}

/// The bytes that a modelled solid-state disk maps and writes together: a write of a part reads
/// the rest, as on a platter with sectors of 4 KiB.
const FLASH_UNIT: u64 = 4096;

fn of_members(facts: &mut Facts, plan: &Plan, experiment: &Experiment) {
    let disks = plan.presets.iter().zip(&plan.parameters).enumerate();
    for (slot, (preset, parameters)) in disks {
        let device = format!("disk{slot}");
        facts.add(fact::member_device(slot), &device, "");
        let region = experiment.regions.get(slot);
        let start = region.map_or(0, |region| {
            region.start.0 / SECTOR_BYTES + region.first_sector
        });
        let shared = |of: fn(&raidlab_lab::Region) -> &String| {
            region.map(of).filter(|name| !name.is_empty())
        };
        let size = plan.sizes().get(slot).map(|size| size.0.to_string());
        let fastest = parameters.rate_curve.iter();
        let fastest = fastest.map(|point| point.bytes_per_second);
        let rotational = parameters.medium().facts().rotational;
        let rate = fastest.fold(0.0, f64::max);
        let cache = if parameters.declares_write_cache() {
            "write back"
        } else {
            "write through"
        };
        let bus = region.and_then(|region| region.bus.as_ref());
        let channel = bus.map(|bus| bus.name.clone());
        let channel = channel.or_else(|| shared(|region| &region.channel).cloned());
        let unit = match parameters.state() {
            Some(_) => FLASH_UNIT,
            None => parameters.physical_sector.0,
        };
        let physical = (unit > SECTOR_BYTES).then(|| unit.to_string());
        let fit = preset.set_beside(&experiment.fit);
        let fitted = preset
            .is_fitted(fit)
            .ok()
            .map(|fitted| truth(fitted).to_owned());
        let known = [
            (property::MODEL, Some(preset.name.clone())),
            (property::FITTED, fitted),
            (property::ROTATIONAL, Some(truth(rotational).to_owned())),
            (property::SIZE_BYTES, size),
            (property::START_SECTOR, Some(start.to_string())),
            (property::WRITE_CACHE, Some(cache.to_owned())),
            (property::PHYSICAL_SECTOR_BYTES, physical),
            (property::STATE, parameters.state().map(str::to_owned)),
            (property::PARENT, shared(|region| &region.drive).cloned()),
            (property::CHANNEL, channel),
            (
                property::CHANNEL_BYTES_PER_SECOND,
                bus.map(|bus| bus.bytes_per_second.0.to_string()),
            ),
            (
                property::SEQUENTIAL_BYTES_PER_SECOND,
                rotational.then(|| rate.to_string()),
            ),
        ];
        for (name, value) in known {
            if let Some(value) = value {
                facts.add(fact::disk(&device, name), value, "");
            }
        }
    }
}

/// The facts of a job beside its rows.
pub(crate) fn of_job(
    job: &PlannedJob,
    experiment: &Experiment,
    plan: &Plan,
    deeds: &Deeds,
    result: &JobResult,
) -> Vec<Observation> {
    let mut facts = Facts {
        scope: Scope {
            sequence: Some(job.sequence),
            ..experiment.scope()
        },
        all: Vec::new(),
    };
    if let Ok(group) = job.work.group() {
        let asked = Asked::of(group, plan.capacity(), false);
        for (name, value, unit) in asked.facts() {
            facts.add(name, value, unit);
        }
        of_group(&mut facts, group, plan);
        of_words(&mut facts, &job.work);
        of_endings(&mut facts, group, result);
    }
    if let Some(explained) = &result.explained {
        let requests = explained.requests.max(1);
        for (place, time) in &explained.places {
            facts.add(fact::time_ns(place), time.0 / requests, "ns");
        }
    }
    if let Some(used) = &result.processor {
        of_processor(&mut facts, used, result.elapsed);
    }
    facts.add(fact::JOB_DATA_PATTERN, "random", "");
    facts.add(fact::JOB_ALLOWS_SYNC, truth(deeds.allows_sync()), "");
    facts.add(
        fact::JOB_ALLOWS_DEGRADED,
        truth(deeds.allows_degraded()),
        "",
    );
    let sync = [fact::SYNC_ACTIVE_START, fact::SYNC_ACTIVE_END];
    for (name, percent) in sync.into_iter().zip(result.sync_percent) {
        let kind = match percent {
            None => "none",
            Some(_) if deeds.is_checking() => "check",
            Some(_) if deeds.allows_sync() => "recovery",
            Some(_) => "resync",
        };
        facts.add(name, kind, "");
    }
    let health = [fact::ARRAY_HEALTH_START, fact::ARRAY_HEALTH_END];
    for (name, letters) in health.into_iter().zip(&result.health) {
        let degraded = letters.contains('_');
        facts.add(name, if degraded { "degraded" } else { "optimal" }, "");
    }
    // A modelled machine has no other users, and its disks have no faults.
    for name in [
        fact::FOREIGN_BYTES,
        fact::CPU_STEAL_PERCENT,
        fact::FIO_ERROR,
        fact::FIO_SHORT_IOS,
        fact::FIO_DROPPED_IOS,
    ] {
        facts.add(name, 0, "");
    }
    facts.all
}

/// Adds the uses of the processor: by which threads, and for what.
fn of_processor(facts: &mut Facts, used: &ProcessorUse, elapsed: Nanos) {
    let of_one = |time: Nanos| format!("{:.3}", percent(time.0, elapsed.0));
    let all = Nanos(elapsed.0.saturating_mul(used.cores));
    let busy = format!("{:.3}", percent(used.busy().0, all.0));
    facts.add(fact::CPU_BUSY_PERCENT, busy, "%");
    facts.add(fact::CPU_USER_PERCENT, of_one(used.user), "%");
    facts.add(fact::CPU_SYSTEM_PERCENT, of_one(used.system), "%");
    facts.add(fact::CPU_INTERRUPT_PERCENT, of_one(used.interrupts), "%");
    for thread in &used.threads {
        let name = fact::cpu_thread_percent(&thread.name);
        facts.add(name, of_one(thread.busy), "%");
    }
    for (place, time) in &used.places {
        facts.add(fact::cpu_for_percent(place), of_one(*time), "%");
    }
    for lock in &used.locks {
        let counts = [
            (lock_part::PASSES, lock.passes, ""),
            (lock_part::CONTENDED, lock.contended, ""),
            (lock_part::WAIT_NS, lock.wait.0, "ns"),
            (lock_part::HOLD_NS, lock.hold.0, "ns"),
        ];
        for (what, count, unit) in counts {
            facts.add(fact::lock(lock.name, what), count, unit);
        }
    }
}

/// Adds a job's own findings, under the names that fio's own report gets: the depth that keeps a
/// latency, whether it ran evenly, and zones that began anew. A fact of a single clone among
/// others names it.
fn of_endings(facts: &mut Facts, group: &JobGroup, result: &JobResult) {
    let named = |name: &str, job: usize, clone: Option<u32>| {
        let spec = group.jobs.get(job);
        let alone = group.jobs.len() == 1 && spec.is_none_or(|spec| spec.num_jobs == 1);
        match (spec, clone) {
            (Some(spec), Some(clone)) if !alone => format!("tool.{name} {}.{clone}", spec.name),
            _ => format!("tool.{name}"),
        }
    };
    for found in &result.depths {
        let name = |name| named(name, found.job, Some(found.clone));
        facts.add(name("latency_depth"), found.depth, "");
        facts.add(name("latency_depth settled"), u8::from(found.settled), "");
    }
    for steady in &result.steady {
        let name = |name| named(name, steady.job, steady.clone);
        facts.add(name("steadystate attained"), u8::from(steady.attained), "");
        let rule = group.jobs.get(steady.job).and_then(|job| job.steady_state);
        if let Some((criterion, rule)) = steady.criterion.zip(rule) {
            let unit = if rule.in_percent { "%" } else { "" };
            facts.add(
                name("steadystate criterion"),
                format!("{criterion:.6}{unit}"),
                "",
            );
        }
    }
    if group.jobs.iter().any(|job| job.zones.is_some()) {
        facts.add("tool.zone_resets", result.zone_resets, "");
    }
}

/// Adds the options that shape the meaning of fio's figures, of jobs that have them alike.
fn of_group(facts: &mut Facts, group: &JobGroup, plan: &Plan) {
    let clones = group.jobs.iter().map(|job| u64::from(job.num_jobs));
    facts.add(fact::FIO_JOBS, clones.sum::<u64>(), "");
    let Some(first) = group.jobs.first() else {
        return;
    };
    let engine = match first.engine {
        Engine::Sync => "sync",
        Engine::Libaio => "libaio",
        Engine::Null => "null",
    };
    let reduced = first.reduced_clock && !plan.ablations.contains(&Ablation::FioClock);
    let switch = |holds: bool| u8::from(holds).to_string();
    let mut options = vec![
        // No modelled machine has a page cache.
        ("direct", "1".to_owned()),
        ("bs", first.block_size.0.to_string()),
        ("iodepth", first.io_depth.to_string()),
        ("ioengine", engine.to_owned()),
        ("time_based", switch(first.time_based)),
        ("norandommap", switch(!first.random_map)),
        ("gtod_reduce", switch(reduced)),
    ];
    if let Some(seed) = first.random_seed {
        options.push(("randrepeat", "0".to_owned()));
        options.push(("randseed", seed.to_string()));
    }
    for (name, every) in [
        ("sync", u32::from(first.sync_writes)),
        ("fsync", first.fsync_every),
        ("fdatasync", first.fdatasync_every),
    ] {
        if every > 0 {
            options.push((name, every.to_string()));
        }
    }
    let process = |&&(known, _): &&(ArrivalProcess, &str)| {
        first.rate.is_some_and(|rate| rate.process == known)
    };
    if let Some((_, name)) = ArrivalProcess::ALL.iter().find(process) {
        options.push(("rate_process", (*name).to_owned()));
    }
    for (name, value) in options {
        facts.add(fact::fio_option(name), value, "");
    }
    if let Some(streams) = streams_on_one_place(group, plan.capacity()) {
        facts.add(fact::FIO_STREAMS_ON_ONE_REGION, streams, "");
    }
    of_limits(facts, group);
}

/// The largest number of sequential streams, clones or jobs, that begin at the same place; `None`
/// where there are none. They all run on the one modelled device.
fn streams_on_one_place(group: &JobGroup, capacity: Bytes) -> Option<u32> {
    let mut places: BTreeMap<(u64, [bool; 3]), u32> = BTreeMap::new();
    for job in group.jobs.iter().filter(|job| !job.pattern.is_random()) {
        let starts = (0..job.num_jobs).filter_map(|clone| job.region(clone, capacity).ok());
        for (start, _) in starts {
            *places
                .entry((start.0, job.pattern.directions()))
                .or_default() += 1;
        }
    }
    places.into_values().max()
}

/// The options that are told as they are written: which blocks a job draws, and what may end it.
const AS_WRITTEN: [&str; 12] = [
    "random_distribution",
    "percentage_random",
    "random_generator",
    "bssplit",
    "bsrange",
    "blockalign",
    "rw_sequencer",
    "zonemode",
    "loops",
    "latency_target",
    "latency_run",
    "steadystate",
];

/// Adds the options of the first job that are told as they are written.
fn of_words(facts: &mut Facts, work: &Work) {
    let Work::Fio { jobs, .. } = work else {
        return;
    };
    let Some(first) = jobs.jobs.first() else {
        return;
    };
    for name in AS_WRITTEN.into_iter().filter(|name| first.has(name)) {
        let value = first.value(name).unwrap_or("1");
        facts.add(fact::fio_option(name), value, "");
    }
    // So many requests follow each other before a place is drawn again.
    let runs = first.value("rw").filter(|pattern| pattern.contains(':'));
    if let Some(pattern) = runs {
        facts.add(fact::fio_option("rw"), pattern, "");
    }
}

/// Adds the rates that all jobs together are not to exceed, where each has one.
fn of_limits(facts: &mut Facts, group: &JobGroup) {
    for operation in DIRECTIONS {
        if let Some(sum) = rate_limit(group, operation) {
            let name = fact::fio_limit(operation, fact::rate_of::BYTES);
            facts.add(name, sum, "bytes/s");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Facts, of_limits, of_subject};
    use crate::build::Plan;
    use raidlab_lab::{Choices, Files, Suite, ZfsCompression};
    use raidlab_store::{Scope, fact};
    use raidlab_workload::{JobGroup, JobSpec, Rate};
    use std::collections::BTreeSet;

    #[test]
    fn a_limit_is_that_of_all_clones_and_of_no_job_alone() {
        let limited = JobSpec {
            num_jobs: 3,
            rate: Some(Rate {
                per_second: [1000, 0, 0],
                ..Rate::default()
            }),
            ..JobSpec::default()
        };
        let told = |jobs: Vec<JobSpec>| {
            let mut facts = Facts {
                scope: Scope::default(),
                all: Vec::new(),
            };
            let stop_together = false;
            of_limits(
                &mut facts,
                &JobGroup {
                    jobs,
                    stop_together,
                },
            );
            let told = facts.all.into_iter();
            told.map(|one| (one.name, one.value)).collect::<Vec<_>>()
        };
        let name = "fio.limit.read.bytes_per_second".to_owned();
        assert_eq!(told(vec![limited.clone()]), [(name, "3000".to_owned())]);
        assert!(told(vec![limited, JobSpec::default()]).is_empty());
    }

    #[test]
    fn a_fact_of_a_subject_is_told_once() {
        let suite = Suite::load("zfs-volume").expect("built in");
        let choices = Choices {
            fits: vec!["strict".to_owned()],
            ..Choices::default()
        };
        let mut experiment = suite.experiments(&suite.subjects, &choices).remove(0);
        for compression in [ZfsCompression::Off, ZfsCompression::Lz4] {
            let zfs = experiment.subject.zfs.as_mut().expect("a pool");
            zfs.compression = compression;
            let plan = Plan::new(&experiment, &Files::default()).expect("modelled");
            let facts = of_subject(&plan, &experiment);
            let names: BTreeSet<&str> = facts.iter().map(|one| one.name.as_str()).collect();
            assert_eq!(names.len(), facts.len());
            let told = facts.iter().find(|one| one.name == fact::COMPRESSION);
            assert_eq!(told.expect("told").value, compression.to_string());
        }
    }
}
