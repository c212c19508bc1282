//! Checks that a suite's steps are possible in their order.

use super::step::ReadStep;
use super::{Event, EventKind, Job};
use crate::document::{Document, FileError, check_case};
use crate::published::Published;
use crate::subject::{Subject, SubjectKind};
use std::collections::BTreeSet;
use std::ops::Range;

/// The state of a member while the steps are checked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Present,
    Failed,
    Removed,
}

/// Simulates the steps on each subject's array, and refuses impossible ones.
pub(super) struct Checker<'a> {
    document: &'a Document,
    arrays: Vec<Array<'a>>,
    jobs: Vec<(String, usize)>,
    classes: Vec<(String, usize)>,
    published: Option<&'a Published>,
}

/// A subject's members.
struct Array<'a> {
    subject: &'a Subject,
    /// The position among the suite's subjects.
    place: usize,
    members: Vec<Place>,
}

impl<'a> Checker<'a> {
    /// Begins with all of a subject's members in its array but those that its entry removes.
    /// `are_alike`: every step is for all subjects.
    pub(super) fn new(
        document: &'a Document,
        disks: usize,
        subjects: &'a [Subject],
        are_alike: bool,
        published: Option<&'a Published>,
    ) -> Self {
        let array = |(place, subject): (usize, &'a Subject)| {
            let mut members = vec![Place::Present; subject.member_count(disks)];
            for &removed in &subject.removed {
                members[usize::from(removed)] = Place::Removed;
            }
            Array {
                subject,
                place,
                members,
            }
        };
        // A single disk's part of the suite ends at the first event.
        let in_arrays = |(_, subject): &(usize, &Subject)| subject.kind != SubjectKind::Disk;
        let subjects = subjects.iter().enumerate().filter(in_arrays);
        let mut arrays: Vec<Array<'a>> = subjects.map(array).collect();
        if are_alike {
            // Equal arrays give equal errors.
            arrays.dedup_by(|one, other| {
                let may_miss = |array: &Array<'_>| array.subject.may_miss(array.members.len());
                one.members == other.members && may_miss(one) == may_miss(other)
            });
        }
        Self {
            document,
            arrays,
            jobs: Vec::new(),
            classes: Vec::new(),
            published,
        }
    }

    /// Checks the next step, whose jobs, event or wait are for these subjects, by their positions.
    ///
    /// # Errors
    /// When the step is impossible.
    pub(super) fn check(
        &mut self,
        step: &ReadStep,
        doers: &[BTreeSet<usize>],
    ) -> Result<(), FileError> {
        match step {
            ReadStep::Check | ReadStep::Wait(_) => Ok(()),
            ReadStep::Event(event, member) => doers
                .iter()
                .try_for_each(|doers| self.check_event(*event, member, doers)),
            ReadStep::Jobs {
                jobs,
                named,
                classed,
                members,
                ..
            } => {
                for ((job, _), doers) in jobs.iter().zip(doers) {
                    self.check_job(job, named)?;
                    self.check_case(job, named, classed)?;
                    for (timed, member) in job.events.iter().zip(members) {
                        self.check_event(timed.event, member, doers)?;
                    }
                }
                Ok(())
            }
        }
    }

    fn check_job(&mut self, job: &Job, span: &Range<usize>) -> Result<(), FileError> {
        let line = self.document.line(span.start);
        let span = span.clone();
        if let Some((name, other)) = self.jobs.iter().find(|(name, _)| *name == job.name) {
            let (what, remedy) = if *other == line {
                (
                    format!("the matrix makes several jobs `{name}`"),
                    "put every key of the matrix into `job`, in braces",
                )
            } else {
                (
                    format!("job `{name}` is also on line {other}"),
                    "give each job its own name",
                )
            };
            return Err(self.document.invalid(span, what, remedy));
        }
        let published = self
            .published
            .and_then(|figures| figures.class_of(&job.name));
        if let Some(class) = published.filter(|class| class.id != job.class) {
            let what = format!(
                "the published figures put this job into class `{}`",
                class.id
            );
            let remedy = "use that class";
            return Err(self.document.invalid(span, what, remedy));
        }
        Ok(())
    }

    /// Refuses a job or a class whose name differs from an earlier one in capital letters alone.
    fn check_case(
        &mut self,
        job: &Job,
        named: &Range<usize>,
        classed: &Range<usize>,
    ) -> Result<(), FileError> {
        let names = [
            ("job", &job.name, named, &mut self.jobs),
            ("class", &job.class, classed, &mut self.classes),
        ];
        for (what, name, span, known) in names {
            let others = known.iter();
            let others = others.map(|(other, line)| (&**other, format!(" on line {line}")));
            let checked = check_case(what, name, others);
            self.document.hold(span.clone(), checked)?;
            known.push((name.clone(), self.document.line(span.start)));
        }
        Ok(())
    }

    fn check_event(
        &mut self,
        event: Event,
        span: &Range<usize>,
        doers: &BTreeSet<usize>,
    ) -> Result<(), FileError> {
        let concerned = |array: &&mut Array<'a>| doers.contains(&array.place);
        for array in self.arrays.iter_mut().filter(concerned) {
            array
                .take(event)
                .map_err(|(what, remedy)| self.document.invalid(span.clone(), what, remedy))?;
        }
        Ok(())
    }
}

impl Array<'_> {
    /// Applies an event to a member; the error is what is wrong, and the remedy.
    fn take(&mut self, event: Event) -> Result<(), (String, String)> {
        let count = self.members.len();
        let index = usize::from(event.member);
        let Some(&place) = self.members.get(index) else {
            let whose = if self.subject.members.is_some() {
                format!("`{}` has", self.subject.name)
            } else {
                "`disks` names".to_owned()
            };
            let members = match count {
                1 => "1 disk: member 0".to_owned(),
                _ => format!("{count} disks: members 0 to {}", count - 1),
            };
            return Err((
                format!("there is no member {}", event.member),
                format!("{whose} {members}"),
            ));
        };
        let next = match (event.kind, place) {
            (EventKind::Fail, Place::Present) => Place::Failed,
            (EventKind::Remove, Place::Present | Place::Failed) => Place::Removed,
            (EventKind::Insert | EventKind::ReAdd, Place::Removed) => Place::Present,
            (EventKind::Insert | EventKind::ReAdd, _) => {
                return Err((
                    format!("member {} is still in the array", event.member),
                    "remove it in an earlier step".to_owned(),
                ));
            }
            (EventKind::Fail | EventKind::Remove, _) => {
                return Err((
                    format!("member {} is no longer in the array", event.member),
                    "insert it in an earlier step".to_owned(),
                ));
            }
        };
        self.members[index] = next;
        let gone = (self.members.iter()).filter(|place| **place != Place::Present);
        match self.subject.cannot_miss(gone.count(), count) {
            Some(what) => Err((what, "insert another one before".to_owned())),
            None => Ok(()),
        }
    }
}
