//! A target that reports all of its requests and answers to an observer.
//!
//! One wrapper serves the lab's journal of commands and the recorder of
//! transcripts: the recorder is an observer that writes a line.

use crate::command::{Command, Output};
use crate::exchange::{Answer, Exchange, Failure, Request};
use crate::hold::{Claim, Lock};
use crate::target::{Frame, Frames, Running, Target, TargetError, Watched};
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A function that is called with every exchange; from several threads, where
/// several make requests.
pub type Observer = Arc<dyn Fn(&Exchange) + Send + Sync>;

/// A target whose requests and answers are all reported to an [`Observer`]. A started command is
/// reported when it has ended, a watch's frames when they are taken.
#[derive(Clone)]
pub struct Observed<T> {
    target: T,
    told: Told,
}

#[derive(Clone)]
struct Told {
    observer: Observer,
    begun: Instant,
}

impl Told {
    fn tell(&self, request: Request, answer: Answer) {
        (self.observer)(&Exchange {
            at: self.begun.elapsed(),
            request,
            answer,
        });
    }

    fn pass<V>(
        &self,
        request: Request,
        result: Result<V, TargetError>,
        answer: impl FnOnce(&V) -> Answer,
    ) -> Result<V, TargetError> {
        let answer = match &result {
            Ok(value) => answer(value),
            Err(error) => Answer::Failure(Failure::of(error)),
        };
        self.tell(request, answer);
        result
    }
}

impl<T: Target> Observed<T> {
    /// Observes a target from now on.
    pub fn new(target: T, observer: impl Fn(&Exchange) + Send + Sync + 'static) -> Self {
        Self {
            target,
            told: Told {
                observer: Arc::new(observer),
                begun: Instant::now(),
            },
        }
    }

    /// Records a target: every exchange becomes a line of JSON in the
    /// transcript, which [`crate::Recorded::from_transcript`] reads. A line
    /// that cannot be written is lost; the experiment goes on.
    pub fn recording(target: T, transcript: impl Write + Send + 'static) -> Self {
        let transcript = Mutex::new(transcript);
        Self::new(target, move |exchange| {
            let mut transcript = transcript.lock().unwrap_or_else(PoisonError::into_inner);
            if let Ok(line) = serde_json::to_string(exchange) {
                // Written in one piece and at once: a killed run keeps what it had.
                let _ = transcript.write_all((line + "\n").as_bytes());
                let _ = transcript.flush();
            }
        })
    }

    /// The target whose exchanges are observed.
    pub const fn inner(&self) -> &T {
        &self.target
    }
}

impl<T: Target> Target for Observed<T> {
    fn name(&self) -> &str {
        self.target.name()
    }

    fn output(&self, command: &Command) -> Result<Output, TargetError> {
        let result = self.target.output(command);
        let request = Request::Command(command.clone());
        self.told
            .pass(request, result, |output| Answer::Output(output.clone()))
    }

    fn start(&self, command: &Command) -> Result<Box<dyn Running>, TargetError> {
        let request = Request::Command(command.clone());
        match self.target.start(command) {
            Ok(running) => Ok(Box::new(ObservedRunning {
                running,
                told: self.told.clone(),
                request: Some(request),
            })),
            failed => self
                .told
                .pass(request, failed, |_| Answer::Output(Output::default())),
        }
    }

    fn read(&self, path: &str) -> Result<String, TargetError> {
        let request = Request::Read(path.to_owned());
        self.told.pass(request, self.target.read(path), |text| {
            Answer::Text(text.clone())
        })
    }

    fn write(&self, path: &str, text: &str) -> Result<(), TargetError> {
        let request = Request::Write {
            path: path.to_owned(),
            text: text.to_owned(),
        };
        self.told
            .pass(request, self.target.write(path, text), |()| Answer::Written)
    }

    fn list(&self, folder: &str) -> Result<Vec<String>, TargetError> {
        let request = Request::List(folder.to_owned());
        self.told.pass(request, self.target.list(folder), |names| {
            Answer::Names(names.clone())
        })
    }

    fn tool_folders(&self) -> Vec<String> {
        self.target.tool_folders()
    }

    fn resolve(&self, path: &str) -> Result<String, TargetError> {
        let request = Request::Resolve(path.to_owned());
        self.told.pass(request, self.target.resolve(path), |path| {
            Answer::Text(path.clone())
        })
    }

    fn watch(
        &self,
        sources: Vec<Watched>,
        every: Duration,
    ) -> Result<Box<dyn Frames>, TargetError> {
        let frames = self.target.watch(sources.clone(), every)?;
        Ok(Box::new(ObservedFrames {
            frames,
            told: self.told.clone(),
            sources,
        }))
    }

    fn lock(&self, path: &str, holder: &str) -> Result<Lock, TargetError> {
        self.target.lock(path, holder)
    }

    fn claim(&self, device: &str) -> Result<Option<Claim>, TargetError> {
        self.target.claim(device)
    }
}

struct ObservedRunning {
    running: Box<dyn Running>,
    told: Told,
    /// The request; it is reported together with its answer.
    request: Option<Request>,
}

impl ObservedRunning {
    fn ended(&mut self, answer: Answer) {
        if let Some(request) = self.request.take() {
            self.told.tell(request, answer);
        }
    }
}

impl Running for ObservedRunning {
    fn poll(&mut self) -> Result<Option<Output>, TargetError> {
        let result = self.running.poll();
        match &result {
            Ok(None) => {}
            Ok(Some(output)) => self.ended(Answer::Output(output.clone())),
            Err(error) => self.ended(Answer::Failure(Failure::of(error))),
        }
        result
    }

    fn stop(&mut self, patience: Duration) -> Result<Output, TargetError> {
        let result = self.running.stop(patience);
        self.ended(match &result {
            Ok(output) => Answer::Output(output.clone()),
            Err(error) => Answer::Failure(Failure::of(error)),
        });
        result
    }
}

struct ObservedFrames {
    frames: Box<dyn Frames>,
    told: Told,
    sources: Vec<Watched>,
}

impl Frames for ObservedFrames {
    fn take(&mut self) -> Result<Vec<Frame>, TargetError> {
        let frames = self.frames.take()?;
        for frame in &frames {
            let request = Request::Watch(self.sources.clone());
            self.told.tell(request, Answer::Frame(frame.clone()));
        }
        Ok(frames)
    }
}
