//! Implementations of [`Target`](crate::Target) for pointers to targets: the code that drives an
//! experiment takes any target, and several threads share one.

use crate::command::{Command, Output};
use crate::hold::{Claim, Lock};
use crate::target::{Frames, Running, Target, TargetError, Watched};
use std::sync::Arc;
use std::time::Duration;

macro_rules! target_behind {
    ($($pointer:ident),*) => {$(
        impl<T: Target + ?Sized> Target for $pointer<T> {
            fn name(&self) -> &str {
                (**self).name()
            }

            fn output(&self, command: &Command) -> Result<Output, TargetError> {
                (**self).output(command)
            }

            fn start(&self, command: &Command) -> Result<Box<dyn Running>, TargetError> {
                (**self).start(command)
            }

            fn read(&self, path: &str) -> Result<String, TargetError> {
                (**self).read(path)
            }

            fn write(&self, path: &str, text: &str) -> Result<(), TargetError> {
                (**self).write(path, text)
            }

            fn list(&self, folder: &str) -> Result<Vec<String>, TargetError> {
                (**self).list(folder)
            }

            fn tool_folders(&self) -> Vec<String> {
                (**self).tool_folders()
            }

            fn resolve(&self, path: &str) -> Result<String, TargetError> {
                (**self).resolve(path)
            }

            fn watch(
                &self,
                sources: Vec<Watched>,
                every: Duration,
            ) -> Result<Box<dyn Frames>, TargetError> {
                (**self).watch(sources, every)
            }

            fn lock(&self, path: &str, holder: &str) -> Result<Lock, TargetError> {
                (**self).lock(path, holder)
            }

            fn claim(&self, device: &str) -> Result<Option<Claim>, TargetError> {
                (**self).claim(device)
            }
        }
    )*};
}

target_behind!(Arc, Box);
