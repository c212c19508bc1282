//! A machine that answers from a recording.
//!
//! Answers to equal requests are given in the recorded order. The last answer to a request that
//! only reads is repeated for ever; a request that changes something is answered only as often as
//! it was recorded, since a machine on which `mkfs` ran once more than planned is not the same.
//! Requests are equal with the same program, arguments and input, whatever the environment.

use crate::command::{Command, Output};
use crate::exchange::{Answer, Exchange, Failure, Request};
use crate::target::{Frame, Frames, Running, Target, TargetError, Watched};
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The reason why a transcript cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TranscriptError {
    /// A line is not an exchange.
    #[error("line {line} of the transcript is no exchange")]
    Line {
        /// The number of the line, from 1.
        line: usize,
        /// The error, with the field.
        #[source]
        source: serde_json::Error,
    },
}

/// A machine that answers from a recording, and remembers its requests.
#[derive(Debug)]
pub struct Recorded {
    name: String,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    answers: HashMap<Request, VecDeque<Answer>>,
    /// Files given by the builder, which can be written.
    files: BTreeMap<String, String>,
    lacking: BTreeSet<String>,
    frames: VecDeque<Frame>,
    asked: Vec<Request>,
}

impl Recorded {
    /// Creates a machine of this name without any answers.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            state: Arc::default(),
        }
    }

    /// Creates a machine from the text of a transcript; empty lines are skipped.
    ///
    /// # Errors
    /// When a line is no exchange.
    pub fn from_transcript(name: &str, transcript: &str) -> Result<Self, TranscriptError> {
        let mut recorded = Self::new(name);
        for (index, line) in transcript.lines().enumerate() {
            if line.trim().is_empty() {
                continue;
            }
            let exchange: Exchange =
                serde_json::from_str(line).map_err(|source| TranscriptError::Line {
                    line: index + 1,
                    source,
                })?;
            recorded = recorded.knows(&exchange.request, exchange.answer);
        }
        Ok(recorded)
    }

    /// Adds an answer to a request.
    #[must_use]
    pub fn knows(self, request: &Request, answer: Answer) -> Self {
        let key = request.key();
        self.lock()
            .answers
            .entry(key)
            .or_default()
            .push_back(answer);
        self
    }

    /// Adds an answer to a command.
    #[must_use]
    pub fn answers(self, command: &Command, output: Output) -> Self {
        self.knows(&Request::Command(command.clone()), Answer::Output(output))
    }

    /// Adds a command that succeeds and prints this.
    #[must_use]
    pub fn says(self, command: &Command, stdout: impl Into<String>) -> Self {
        let code = command.success.first().copied().unwrap_or(0);
        self.answers(
            command,
            Output {
                code: Some(code),
                stdout: stdout.into(),
                ..Output::default()
            },
        )
    }

    /// Makes a program missing, whatever its arguments.
    #[must_use]
    pub fn lacks(self, program: &str) -> Self {
        self.lock().lacking.insert(program.to_owned());
        self
    }

    /// Adds a file, which can be read and written, and is listed in its folders.
    #[must_use]
    pub fn file(self, path: &str, text: impl Into<String>) -> Self {
        self.lock().files.insert(path.to_owned(), text.into());
        self
    }

    /// Makes the file at this path missing.
    #[must_use]
    pub fn file_missing(self, path: &str) -> Self {
        self.knows(
            &Request::Read(path.to_owned()),
            Answer::Failure(Failure::Missing),
        )
    }

    /// Adds a folder of exactly these names; without names it is empty or missing.
    #[must_use]
    pub fn folder(self, path: &str, names: &[&str]) -> Self {
        let names = names.iter().map(|&name| name.to_owned()).collect();
        self.knows(&Request::List(path.to_owned()), Answer::Names(names))
    }

    /// Adds a link from a path to another.
    #[must_use]
    pub fn link(self, path: &str, target: &str) -> Self {
        self.knows(
            &Request::Resolve(path.to_owned()),
            Answer::Text(target.to_owned()),
        )
    }

    /// Adds frames for every watch, whatever its sources, one at each take.
    #[must_use]
    pub fn frames(self, frames: Vec<Frame>) -> Self {
        self.lock().frames.extend(frames);
        self
    }

    /// The requests so far, in order. A watch counts when it begins.
    #[must_use]
    pub fn asked(&self) -> Vec<Request> {
        self.lock().asked.clone()
    }

    /// The commands among the requests, as one would type them.
    #[must_use]
    pub fn commands(&self) -> Vec<String> {
        let commands = self
            .asked()
            .into_iter()
            .filter_map(|request| match request {
                Request::Command(command) => Some(command.to_string()),
                _ => None,
            });
        commands.collect()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers a request, or returns the error that it is not recorded.
    fn ask(&self, request: &Request) -> Result<Answer, TargetError> {
        let mut state = self.lock();
        state.asked.push(request.clone());
        match state.answer(request) {
            Some(Answer::Failure(failure)) => Err(failure.error(&self.name, request)),
            Some(answer) => Ok(answer),
            None => Err(self.not_recorded(request)),
        }
    }

    fn not_recorded(&self, request: &Request) -> TargetError {
        TargetError::NotRecorded {
            machine: self.name.clone(),
            request: request.to_string(),
        }
    }
}

impl State {
    fn answer(&mut self, request: &Request) -> Option<Answer> {
        if let Some(answers) = self.answers.get_mut(&request.key()) {
            match answers.front() {
                Some(last) if answers.len() == 1 && request.only_reads() => {
                    return Some(last.clone());
                }
                Some(_) => return answers.pop_front(),
                None => {}
            }
        }
        match request {
            Request::Command(command) if self.lacking.contains(&command.program) => {
                Some(Answer::Failure(Failure::NoProgram))
            }
            Request::Read(path) => self.files.get(path).cloned().map(Answer::Text),
            Request::Write { path, text } => {
                let file = self.files.get_mut(path)?;
                file.clone_from(text);
                Some(Answer::Written)
            }
            Request::List(folder) => self.names(folder).map(Answer::Names),
            Request::Resolve(path) if self.files.contains_key(path) => {
                Some(Answer::Text(path.clone()))
            }
            _ => None,
        }
    }

    /// The names in a folder, as far as the known files tell.
    fn names(&self, folder: &str) -> Option<Vec<String>> {
        let prefix = format!("{}/", folder.trim_end_matches('/'));
        let names: BTreeSet<&str> = self
            .files
            .keys()
            .filter_map(|path| path.strip_prefix(&prefix)?.split('/').next())
            .collect();
        (!names.is_empty()).then(|| names.into_iter().map(str::to_owned).collect())
    }

    fn frame(&mut self, sources: &[Watched], at: Duration) -> Option<Frame> {
        if let Some(frame) = self.frames.pop_front() {
            return Some(frame);
        }
        let request = Request::Watch(sources.to_vec());
        if let Some(Answer::Frame(frame)) = self.answer(&request) {
            return Some(frame);
        }
        let contents: Vec<Option<String>> =
            sources.iter().map(|source| self.sample(source)).collect();
        let known = contents.iter().any(Option::is_some);
        known.then_some(Frame { at, contents })
    }

    fn sample(&mut self, source: &Watched) -> Option<String> {
        let request = match source {
            Watched::File(path) => Request::Read(path.clone()),
            Watched::Command(command) => Request::Command(command.clone()),
        };
        match self.answer(&request)? {
            Answer::Text(text) => Some(text),
            Answer::Output(output) => Some(output.stdout),
            _ => None,
        }
    }
}

impl Target for Recorded {
    fn name(&self) -> &str {
        &self.name
    }

    fn output(&self, command: &Command) -> Result<Output, TargetError> {
        let request = Request::Command(command.clone());
        match self.ask(&request)? {
            Answer::Output(output) => Ok(output),
            _ => Err(self.not_recorded(&request)),
        }
    }

    fn start(&self, command: &Command) -> Result<Box<dyn Running>, TargetError> {
        self.output(command)
            .map(|output| Box::new(RecordedRunning(output)) as Box<dyn Running>)
    }

    fn read(&self, path: &str) -> Result<String, TargetError> {
        let request = Request::Read(path.to_owned());
        match self.ask(&request)? {
            Answer::Text(text) => Ok(text),
            _ => Err(self.not_recorded(&request)),
        }
    }

    fn write(&self, path: &str, text: &str) -> Result<(), TargetError> {
        self.ask(&Request::Write {
            path: path.to_owned(),
            text: text.to_owned(),
        })
        .map(|_| ())
    }

    fn list(&self, folder: &str) -> Result<Vec<String>, TargetError> {
        let request = Request::List(folder.to_owned());
        match self.ask(&request)? {
            Answer::Names(names) => Ok(names),
            _ => Err(self.not_recorded(&request)),
        }
    }

    fn resolve(&self, path: &str) -> Result<String, TargetError> {
        let request = Request::Resolve(path.to_owned());
        match self.ask(&request)? {
            Answer::Text(text) => Ok(text),
            _ => Err(self.not_recorded(&request)),
        }
    }

    /// Watches sources, with one frame at each take: those of the builder, then the transcript's;
    /// after these, the recorded contents of the sources' files and commands, for ever.
    fn watch(
        &self,
        sources: Vec<Watched>,
        every: Duration,
    ) -> Result<Box<dyn Frames>, TargetError> {
        let request = Request::Watch(sources.clone());
        self.lock().asked.push(request);
        Ok(Box::new(RecordedFrames {
            state: Arc::clone(&self.state),
            sources,
            every,
            taken: 0,
        }))
    }
}

struct RecordedFrames {
    state: Arc<Mutex<State>>,
    sources: Vec<Watched>,
    every: Duration,
    taken: u32,
}

impl Frames for RecordedFrames {
    fn take(&mut self) -> Result<Vec<Frame>, TargetError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let frame = state.frame(&self.sources, self.every * self.taken);
        self.taken += 1;
        Ok(frame.into_iter().collect())
    }
}

/// A recorded command in the background, which has ended at the first poll.
struct RecordedRunning(Output);

impl Running for RecordedRunning {
    fn poll(&mut self) -> Result<Option<Output>, TargetError> {
        Ok(Some(self.0.clone()))
    }

    fn stop(&mut self, _patience: Duration) -> Result<Output, TargetError> {
        Ok(self.0.clone())
    }
}

#[cfg(test)]
mod tests;
