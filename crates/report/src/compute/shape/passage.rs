//! The same load before, between and after events: jobs of any class that are alike but
//! for the state in which they met the array.
//!
//! The events between two of them are read from the run's records where the bench recorded when
//! its jobs began; elsewhere they follow from the state of the array, which every bench records
//! with each job.

use super::super::sync;
use super::super::view::{Row, View};
use super::{Job, Load, SHARE_MISS, jobs};
use crate::data::RunData;
use raidlab_store::EventRecord;

/// The largest number of jobs whose names can be read below the axis.
const MOST_JOBS: usize = 24;

/// The state in which a job met the array.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum State {
    /// All members are up to date, and nothing is copied.
    Whole,
    /// A member of the array is missing.
    Degraded,
    /// Data are copied in the background.
    Copying,
}

impl State {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::Degraded => "degraded",
            Self::Copying => "sync",
        }
    }
}

/// One load in several states of the array.
#[derive(Debug)]
pub(crate) struct Passage<'v, 'a> {
    /// The jobs in the suite's order, each with the state that it met.
    pub jobs: Vec<(State, Job<'v, 'a>)>,
    /// The events, each with the position of the job that it came before.
    pub marks: Vec<(usize, String)>,
}

/// All loads that met the array in more than one state.
pub(crate) fn passages<'v, 'a>(data: &RunData, view: &'v View<'a>) -> Vec<Passage<'v, 'a>> {
    let series = sync::series(view);
    let mut groups: Vec<Vec<Job<'v, 'a>>> = Vec::new();
    for job in jobs(view) {
        let own = |group: &&mut Vec<Job<'_, '_>>| {
            load(&group[0]) == load(&job) && group.iter().all(|other| is_alike(other, &job))
        };
        match groups.iter_mut().find(own) {
            Some(group) => group.push(job),
            None => groups.push(vec![job]),
        }
    }
    let in_series = |job: &Job<'_, '_>| {
        let mut series = series.iter();
        series.any(|row| std::ptr::eq(*row, job.head()))
    };
    groups.retain(|group| !group.iter().any(in_series) && group.len() <= MOST_JOBS);
    groups
        .into_iter()
        .filter_map(|group| passage(data, group))
        .collect()
}

/// The key by which two jobs are the same load.
fn load(job: &Job<'_, '_>) -> (Load, u64, u32, u32) {
    let head = job.head().head;
    (
        job.load,
        head.block_size_bytes,
        head.queue_depth,
        head.streams,
    )
}

/// Whether two jobs of a load are alike: the same share of reads, and the same order as far as
/// their titles, names and classes tell it.
fn is_alike(one: &Job<'_, '_>, other: &Job<'_, '_>) -> bool {
    let orders = Order::of(one).zip(Order::of(other));
    (one.share - other.share).abs() <= SHARE_MISS && orders.is_none_or(|(own, its)| own == its)
}

/// The order in which requests go through the array. Rows do not have it, but titles and names do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    Random,
    Sequential,
}

impl Order {
    /// The order of a job; `None` where no word tells it, or words contradict each other.
    fn of(job: &Job<'_, '_>) -> Option<Self> {
        let head = job.head().head;
        let texts = [&head.job_title, &head.job, &head.class];
        let words = texts.iter().flat_map(|text| {
            let words = text.split(|letter: char| !letter.is_alphanumeric());
            words.map(str::to_lowercase)
        });
        let orders = words.filter_map(|word| match word.as_str() {
            word if word.starts_with("rand") => Some(Self::Random),
            word if word.starts_with("seq") => Some(Self::Sequential),
            _ => None,
        });
        let orders: Vec<Self> = orders.collect();
        let first = *orders.first()?;
        orders.iter().all(|order| *order == first).then_some(first)
    }
}

fn passage<'v, 'a>(data: &RunData, group: Vec<Job<'v, 'a>>) -> Option<Passage<'v, 'a>> {
    let jobs: Vec<(State, Job<'_, '_>)> = group
        .into_iter()
        .map(|job| (state(job.head()), job))
        .collect();
    if jobs.iter().all(|(state, _)| *state == jobs[0].0) {
        return None;
    }
    let marks = (1..jobs.len()).filter_map(|place| {
        let (before, after) = (&jobs[place - 1], &jobs[place]);
        let words = happened(data, before.1.head(), after.1.head())
            .or_else(|| changed(before.0, after.0).map(str::to_owned))?;
        Some((place, words))
    });
    Some(Passage {
        marks: marks.collect(),
        jobs,
    })
}

/// The worst state of any subject: where one cannot lose a member, the others show it.
fn state(row: &Row<'_>) -> State {
    let states = row.cells.iter().flatten().map(|cell| {
        if cell.m.sync_percent_start.is_some() {
            State::Copying
        } else if cell.m.array_state_start.contains('_') {
            State::Degraded
        } else {
            State::Whole
        }
    });
    states.max().unwrap_or(State::Whole)
}

/// The events between two jobs' beginnings, from the first column whose bench kept them, and from
/// the repetition that is shown of the later job, as each has a clock of its own.
fn happened(data: &RunData, before: &Row<'_>, after: &Row<'_>) -> Option<String> {
    let mut cells = before.repetitions.iter().zip(&after.cells);
    cells.find_map(|(before, after)| {
        let after = (*after)?.m;
        let mut before = before.iter().map(|(m, _)| *m);
        let before = before.find(|m| m.repetition == after.repetition)?;
        let between = before.started_ns..after.started_ns;
        let of_array = |event: &&EventRecord| {
            event.scope.subject == after.subject
                && event.scope.host == after.host
                && event.scope.filesystem == after.filesystem
                && event.scope.repetition.is_none_or(|r| r == after.repetition)
                && between.contains(&event.at_ns)
                && !matches!(event.kind.as_str(), "job-start" | "job-end" | "state")
        };
        let mut events: Vec<&EventRecord> = data.events.iter().filter(of_array).collect();
        events.sort_by_key(|event| event.at_ns);
        let words = events.into_iter().map(event_words).collect::<Vec<_>>();
        (!words.is_empty()).then(|| words.join(", "))
    })
}

/// An event in a word or two: `remove 1`, `sync-end`.
pub(crate) fn event_words(event: &EventRecord) -> String {
    match (event.kind.as_str(), event.member) {
        // The text of a state is the state.
        ("state", _) => event.text.clone(),
        (kind, Some(member)) => format!("{kind} {member}"),
        (kind, None) => kind.to_owned(),
    }
}

/// The event that must have happened between two states.
fn changed(before: State, after: State) -> Option<&'static str> {
    match (before, after) {
        (State::Whole | State::Copying, State::Degraded) => Some("a member is lost"),
        (State::Whole | State::Degraded, State::Copying) => Some("a sync begins"),
        (State::Copying | State::Degraded, State::Whole) => Some("whole again"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{State, passages};
    use crate::compute::view::View;
    use crate::data::RunData;
    use crate::sample;

    /// Before a member is lost, without it, while it is rebuilt, after.
    fn four_states() -> RunData {
        let mut data = sample::data();
        data.measurements = (0..4)
            .map(|sequence| sample::cell("md", sequence))
            .collect();
        for (m, (class, letters, sync)) in data.measurements.iter_mut().zip([
            ("random-read", "[UU]", None),
            ("degraded", "[U_]", None),
            ("recovery", "[U_]", Some(3.0)),
            ("random-read", "[UU]", None),
        ]) {
            class.clone_into(&mut m.class);
            letters.clone_into(&mut m.array_state_start);
            m.sync_percent_start = sync;
            (m.op, m.queue_depth) = (raidlab_store::Operation::Read, 16);
            (m.block_size_bytes, m.streams) = (4096, 1);
        }
        data
    }

    #[test]
    fn a_load_is_followed_through_the_states_of_the_array() {
        let data = four_states();
        let view = View::new(&data);
        let all = passages(&data, &view);
        assert_eq!(all.len(), 1);
        let states: Vec<State> = all[0].jobs.iter().map(|(state, _)| *state).collect();
        use State::{Copying, Degraded, Whole};
        assert_eq!(states, [Whole, Degraded, Copying, Whole]);
        let marks: Vec<_> = all[0]
            .marks
            .iter()
            .map(|(at, text)| (*at, text.as_str()))
            .collect();
        assert_eq!(
            marks,
            [
                (1, "a member is lost"),
                (2, "a sync begins"),
                (3, "whole again")
            ]
        );
    }

    #[test]
    fn what_is_read_in_another_order_or_share_is_another_load() {
        let mut data = four_states();
        data.measurements[2].job_title = "sequential read 4 KiB".to_owned();
        let count = |data: &RunData| {
            let view = View::new(data);
            let all = passages(data, &view);
            all.iter().map(|one| one.jobs.len()).collect::<Vec<_>>()
        };
        assert_eq!(count(&data), [3]);
        data.measurements[2].job_title = "reads while member 1 is rebuilt".to_owned();
        assert_eq!(count(&data), [4]);
        // Seven reads to three writes, and three to seven.
        let reads = data.measurements.clone();
        for (place, mut m) in reads.into_iter().enumerate() {
            m.op = raidlab_store::Operation::Write;
            m.iops = if place == 3 { 700.0 } else { 300.0 };
            data.measurements[place].iops = 1000.0 - m.iops;
            data.measurements.push(m);
        }
        assert_eq!(count(&data), [3]);
    }

    #[test]
    fn what_was_written_down_goes_before_what_must_have_been() {
        let mut data = four_states();
        for (place, m) in (0..).zip(&mut data.measurements) {
            m.started_ns = 10 * place;
        }
        data.events = vec![raidlab_store::EventRecord {
            scope: raidlab_store::Scope {
                subject: "md".to_owned(),
                ..raidlab_store::Scope::default()
            },
            at_ns: 5,
            kind: "remove".to_owned(),
            member: Some(1),
            text: "member 1 was taken out".to_owned(),
        }];
        let view = View::new(&data);
        let all = passages(&data, &view);
        assert_eq!(all[0].marks[0], (1, "remove 1".to_owned()));
        assert_eq!(all[0].marks[1].1, "a sync begins");
    }

    #[test]
    fn a_load_that_met_one_state_is_no_passage() {
        let data = sample::data();
        assert!(passages(&data, &View::new(&data)).is_empty());
    }

    /// Each repetition has a clock of its own, and each job is shown by another one.
    #[test]
    fn events_are_looked_for_within_one_repetition() {
        let mut data = four_states();
        data.measurements.truncate(2);
        let firsts = data.measurements.clone();
        for (repetition, rates) in [(1, [90.0, 60.0]), (2, [110.0, 70.0])] {
            for (m, iops) in firsts.iter().zip(rates) {
                let mut m = m.clone();
                (m.repetition, m.iops) = (repetition, iops);
                m.started_ns = if m.sequence == 0 { 50 } else { 150 };
                data.measurements.push(m);
            }
        }
        (data.measurements[0].iops, data.measurements[1].iops) = (100.0, 50.0);
        (
            data.measurements[0].started_ns,
            data.measurements[1].started_ns,
        ) = (0, 100);
        data.events = vec![raidlab_store::EventRecord {
            scope: raidlab_store::Scope {
                subject: "md".to_owned(),
                repetition: Some(1),
                ..raidlab_store::Scope::default()
            },
            at_ns: 20,
            kind: "scrub".to_owned(),
            member: None,
            text: "long before".to_owned(),
        }];
        let view = View::new(&data);
        let all = passages(&data, &view);
        assert_eq!(all[0].marks, [(1, "a member is lost".to_owned())]);
    }
}
