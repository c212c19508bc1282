//! Whether a suite's steps can happen in their order.

use super::{Event, EventKind, Job, Step};
use crate::document::{Document, FileError};
use crate::published::Published;
use std::ops::Range;

/// Where a member is while the steps are gone through.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Present,
    Failed,
    Removed,
}

/// Goes through the steps as an array would and refuses what cannot happen.
pub(super) struct Checker<'a> {
    document: &'a Document,
    members: Vec<Place>,
    jobs: Vec<(String, usize)>,
    published: Option<&'a Published>,
}

impl<'a> Checker<'a> {
    /// All of `members` are in the array.
    pub(super) fn new(
        document: &'a Document,
        members: usize,
        published: Option<&'a Published>,
    ) -> Self {
        Self {
            document,
            members: vec![Place::Present; members],
            jobs: Vec::new(),
            published,
        }
    }

    /// Takes the next step; `span` is the place to blame.
    ///
    /// # Errors
    /// When it cannot happen.
    pub(super) fn check(&mut self, step: &Step, span: Range<usize>) -> Result<(), FileError> {
        match step {
            Step::Wait(_) => Ok(()),
            Step::Job(job) => self.check_job(job, span),
            Step::Rounds(rounds) => rounds
                .jobs
                .iter()
                .try_for_each(|job| self.check_job(job, span.clone())),
            Step::Event(event) => self.check_event(*event, span),
        }
    }

    fn check_job(&mut self, job: &Job, span: Range<usize>) -> Result<(), FileError> {
        if let Some((_, line)) = self.jobs.iter().find(|(name, _)| *name == job.name) {
            let what = format!("job `{}` is also on line {line}", job.name);
            return Err(self
                .document
                .invalid(span, what, "give each job its own name"));
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
        let line = self.document.line(span.start);
        self.jobs.push((job.name.clone(), line));
        Ok(())
    }

    fn check_event(&mut self, event: Event, span: Range<usize>) -> Result<(), FileError> {
        let count = self.members.len();
        let index = usize::from(event.member);
        let Some(&place) = self.members.get(index) else {
            let what = format!("there is no member {}", event.member);
            let remedy = format!("`disks` names {count} disks: members 0 to {}", count - 1);
            return Err(self.document.invalid(span, what, remedy));
        };
        let next = match (event.kind, place) {
            (EventKind::Fail, Place::Present) => Place::Failed,
            (EventKind::Remove, Place::Present | Place::Failed) => Place::Removed,
            (EventKind::Insert | EventKind::ReAdd, Place::Removed) => Place::Present,
            (EventKind::Insert | EventKind::ReAdd, _) => {
                let what = format!("member {} is still in the array", event.member);
                let remedy = "remove it in an earlier step";
                return Err(self.document.invalid(span, what, remedy));
            }
            (EventKind::Fail | EventKind::Remove, _) => {
                let what = format!("member {} is no longer in the array", event.member);
                let remedy = "insert it in an earlier step";
                return Err(self.document.invalid(span, what, remedy));
            }
        };
        self.members[index] = next;
        if !self.members.contains(&Place::Present) {
            let what = "this leaves the array without a member";
            let remedy = "insert another one before";
            return Err(self.document.invalid(span, what, remedy));
        }
        Ok(())
    }
}
