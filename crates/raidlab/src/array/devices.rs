//! The members as the command line names them: files, block devices, and `[ ... ]`, the array that
//! those between the brackets make.
//!
//! The brackets are words of their own, and may stand within each other; a file called `[` is
//! `./[`. An array so named is put together and started in this process, before the one whose
//! member it is.

use super::serve::not_assembled;
use crate::failure::{Failure, Kind};
use raidlab_array::{AssembleOptions, EngineOptions, ReadPolicyKind};
use raidlab_serve::array::{Assembled, DriverConfig, Nest, NestError, ServeOptions};
use raidlab_serve::member::Member;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The depth to which arrays may lie in each other.
const MAXIMUM_DEPTH: usize = 8;

/// A member as the command line names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Named {
    /// A file or block device.
    File(PathBuf),
    /// The array that the members between two brackets make.
    Array(Vec<Self>),
}

/// Parses the brackets.
///
/// # Errors
/// When they do not match, or nothing is between them.
pub fn named(words: &[PathBuf]) -> Result<Vec<Named>, Failure> {
    let wrong = |words: &str| {
        Err(Failure::words(Kind::Usage, words)
            .help("`[ a.img b.img ]`, with spaces, is the array that a.img and b.img make"))
    };
    let mut open: Vec<Vec<Named>> = vec![Vec::new()];
    for word in words {
        let within = match word.to_str() {
            Some("[") if open.len() > MAXIMUM_DEPTH => {
                return wrong("arrays lie too deep in each other");
            }
            Some("[") => {
                open.push(Vec::new());
                continue;
            }
            Some("]") => match open.pop() {
                Some(within) if within.is_empty() => return wrong("an array has no members"),
                Some(within) if !open.is_empty() => Named::Array(within),
                _ => return wrong("a `]` has no `[`"),
            },
            _ => Named::File(word.clone()),
        };
        if let Some(last) = open.last_mut() {
            last.push(within);
        }
    }
    match <[Vec<Named>; 1]>::try_from(open) {
        Ok([whole]) => Ok(whole),
        Err(_) => wrong("a `[` has no `]`"),
    }
}

/// A nest for arrays that run for a moment only, while their metadata are read or written. With
/// `log` they keep their write log.
#[must_use]
pub fn brief_nest(log: bool) -> Arc<Nest> {
    Nest::new(ServeOptions {
        engine: EngineOptions::new(ReadPolicyKind::MD_6_9),
        log,
        driver: DriverConfig::default(),
    })
}

/// The way in which members are opened, and the arrays among them started.
pub struct Opening<'a> {
    /// The arrays of this process, where arrays that are members live too.
    pub nest: &'a Arc<Nest>,
    /// The options with which arrays among the members are assembled.
    pub how: &'a AssembleOptions,
    /// The function that opens a file or block device.
    pub file: &'a dyn Fn(&Path) -> Result<Member, Failure>,
}

impl Opening<'_> {
    /// Opens a member; `report` is called with the assembly of each array.
    ///
    /// # Errors
    /// When a device cannot be used, or the devices between two brackets do not make an array that
    /// may be started.
    pub fn open(
        &self,
        named: &Named,
        report: &mut dyn FnMut(&Assembled),
    ) -> Result<Member, Failure> {
        let members = match named {
            Named::File(path) => return (self.file)(path),
            Named::Array(members) => members,
        };
        let members = members.iter().map(|member| self.open(member, report));
        let members = members.collect::<Result<Vec<_>, _>>()?;
        let started = self.nest.start(&members, self.how, report);
        started
            .and_then(|name| self.nest.claim_for_new(&name))
            .map_err(|error| match error {
                NestError::Files(error) => not_assembled(error),
                error => Failure::new(Kind::Run, error),
            })
    }
}

#[cfg(test)]
mod tests {
    use super::{Named, named};
    use std::path::PathBuf;

    fn words(text: &str) -> Vec<PathBuf> {
        text.split_whitespace().map(PathBuf::from).collect()
    }

    #[test]
    fn brackets_are_arrays() {
        let file = |name: &str| Named::File(PathBuf::from(name));
        let pair = |left, right| Named::Array(vec![file(left), file(right)]);
        let found = named(&words("[ a b ] ./[ [ [ c d ] e ]")).expect("matches");
        let deep = Named::Array(vec![pair("c", "d"), file("e")]);
        assert_eq!(found, [pair("a", "b"), file("./["), deep]);
        assert_eq!(named(&words("a b")).expect("plain").len(), 2);
    }

    #[test]
    fn brackets_that_do_not_match_are_told() {
        let deep = "[ ".repeat(9);
        for text in ["[ a", "a ]", "[ ]", "[ a ] ]", &deep] {
            assert!(named(&words(text)).is_err(), "{text}");
        }
    }
}
