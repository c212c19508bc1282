//! The evaluation of one fact under one set of parameters.

use crate::facts::{Counted, Fact, Prior, Quantity};
use raidlab_array::{
    Array, ArrayConfig, ConfigError, MemberConfig, ReadPolicyError, RecoveryConfig,
};
use raidlab_disk::{Disk, DiskParameters, Order, ParameterError, StateError};
use raidlab_random::Stream;
use raidlab_sim::{ArraySubject, Host, Machine, MachineConfig, SimError};
use raidlab_units::{Bytes, Nanos, Sectors};
use thiserror::Error;

/// The reason why a fit cannot be made.
#[derive(Debug, Error)]
pub enum FitError {
    /// A fact cannot be simulated.
    #[error("fact `{fact}` cannot be simulated")]
    Simulation {
        /// The fact's id in the facts file.
        fact: String,
        /// The reason why the simulation could not run.
        #[source]
        source: SimError,
    },
    /// The measured job of a fact did nothing in the simulation.
    #[error(
        "the first job of fact `{fact}` does nothing within {seconds} s: simulate it for longer"
    )]
    Nothing {
        /// The fact's id in the facts file.
        fact: String,
        /// The time for which it was simulated, in seconds of virtual time.
        seconds: f64,
    },
    /// A left-out drive cannot begin in the state that its facts are of.
    #[error("`{drive}` cannot begin so")]
    State {
        /// The preset's name.
        drive: String,
        /// The reason why it cannot.
        #[source]
        source: StateError,
    },
    /// A subject is no read policy.
    #[error("fact `{fact}` names an unknown subject")]
    Subject {
        /// The fact's id in the facts file.
        fact: String,
        /// The reason why the subject's name is no read policy.
        #[source]
        source: ReadPolicyError,
    },
    /// An array cannot be set up.
    #[error("fact `{fact}`: the array cannot be set up")]
    Array {
        /// The fact's id in the facts file.
        fact: String,
        /// The mistake in the array's configuration.
        #[source]
        source: ConfigError,
    },
    /// A parameter may not move as the facts say.
    #[error("`{parameter}` cannot be {value}")]
    Range {
        /// The parameter that is to move.
        parameter: String,
        /// An end of its range, or its start.
        value: f64,
        /// The mistake in it.
        #[source]
        source: ParameterError,
    },
    /// The disk does not have a parameter that is to move.
    #[error("`{parameter}` cannot be fitted: this disk has no such parameter")]
    NoParameter {
        /// The parameter's name.
        parameter: String,
    },
    /// No fact names the set.
    #[error("no fact belongs to set `{set}`; there are: {known}")]
    NoFacts {
        /// The name of the parameter set as it was given.
        set: String,
        /// The parameter sets that exist, separated by commas.
        known: String,
    },
}

/// The simulated I/Os per second of a fact, over `time` of virtual time.
pub(crate) fn simulate(
    fact: &Fact,
    parameters: &DiskParameters,
    time: Nanos,
    seed: u64,
) -> Result<f64, FitError> {
    let mut machine = machine(fact, parameters, seed)?;
    let mut group = fact.group();
    for job in &mut group.jobs {
        job.runtime = Some(time);
        job.time_based = true;
    }
    let result = machine.run(&group).map_err(|source| FitError::Simulation {
        fact: fact.id.clone(),
        source,
    })?;
    let job = &result.jobs[0];
    let ios = match fact.counted {
        Counted::Reads => job.reads.ios,
        Counted::Writes => job.writes.ios,
        Counted::Both => job.reads.ios + job.writes.ios,
    };
    if ios == 0 {
        return Err(FitError::Nothing {
            fact: fact.id.clone(),
            seconds: time.as_secs_f64(),
        });
    }
    Ok(ios as f64 / result.runtime.as_secs_f64())
}

fn machine(fact: &Fact, parameters: &DiskParameters, seed: u64) -> Result<Machine, FitError> {
    let random = Stream::new(seed);
    let members = if fact.subject.is_some() { 2 } else { 1 };
    let policy = fact.subject.as_deref().unwrap_or("nearest-head");
    let read_policy =
        raidlab_policies::read_policy(policy).map_err(|source| FitError::Subject {
            fact: fact.id.clone(),
            source,
        })?;
    let member = MemberConfig {
        size: parameters.capacity,
        data_offset: Sectors::ZERO,
        rotational: parameters.medium().facts().rotational,
        write_mostly: false,
        bad_blocks: None,
    };
    let array = Array::new(ArrayConfig::mirror(
        vec![member.clone(); members],
        parameters.capacity,
        read_policy,
        RecoveryConfig::md_3_16(),
        Bytes(512 << 10).to_sectors(),
    ))
    .map_err(|source| FitError::Array {
        fact: fact.id.clone(),
        source,
    })?;
    let disks = (0..members as u64)
        .map(|index| {
            let phase = parameters.some_angle(&mut random.fork("phase", index));
            Disk::new(parameters.clone(), phase, random.fork("disk", index)).into()
        })
        .collect();
    Ok(Machine::new(MachineConfig {
        subject: Box::new(ArraySubject::new(array, member)),
        disks,
        host: Host {
            tags: 31,
            order: Order::Sweep,
            ..Host::new(Nanos::from_micros(fact.turnaround_us))
        },
        random: random.fork("jobs", 0),
        leaps: false,
        processor: None,
    }))
}

/// Computes a prior's quantity from the parameters.
pub(crate) fn quantity(prior: &Prior, parameters: &DiskParameters) -> f64 {
    match prior.quantity {
        Quantity::AverageSeekMs => {
            let platters = parameters.medium.platters();
            platters.map_or(0.0, |platters| platters.seek.average_ns() / 1e6)
        }
    }
}
