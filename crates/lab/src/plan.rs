//! A plan: a run as data, with all that decides its rows.
//!
//! It holds what was asked for, the texts of all files that were read for it (suite, subjects,
//! hosts, published figures, disks, job files), and the resulting experiments. The store keeps it
//! with the run, and resuming the run reads it from there; the guest of the kernel bench gets the
//! same. Where the files have changed meanwhile, the plan's texts count.
//!
//! Its canonical form is JSON without spaces, objects' keys in the order that this version writes;
//! its digest is the SHA-256 of that, whatever form it was read in. If another version of raidlab
//! makes other experiments of the same plan, their digests differ, and the run is refused instead
//! of mixing two.

use crate::experiment::{Experiment, by_steps};
use crate::words::steps_in_words;
use raidlab_units::{hexadecimal, plain_words};
use ring::digest::{Context, SHA256, digest as sum};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::io::{self, Read};

/// The version of plans that this raidlab writes and reads.
pub const PLAN_SCHEMA: u32 = 1;

/// A run as data; `A` is the type of what was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan<A> {
    /// The version of the plan's form: [`PLAN_SCHEMA`].
    pub schema: u32,
    /// The arguments of the run.
    pub asked: A,
    /// The experiments, in the order of the rows.
    pub experiments: Vec<Listed>,
    /// The texts of all files, by the names that [`crate::Files`] knows them by.
    pub files: BTreeMap<String, String>,
}

/// An experiment of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Listed {
    /// The label of a word or two, unique in the plan: `md, strict`.
    pub label: String,
    /// The SHA-256 of the experiment's steps and of its subject's settings.
    pub sha256: String,
}

/// The reason why a text is no plan.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The text does not have the form of a plan.
    #[error("this is not a plan, line {}, column {}: {}", .0.line(), .0.column(), words(.0))]
    Form(serde_json::Error),
    /// The plan is of another version.
    #[error("the plan has schema {found}, this raidlab reads schema {PLAN_SCHEMA}")]
    Schema {
        /// The version in the plan.
        found: u64,
    },
}

/// serde's message in our words, without the place, which is printed before it.
fn words(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let place = text.rfind(" at line ").unwrap_or(text.len());
    plain_words(&text[..place], "")
}

impl<A: Serialize + DeserializeOwned> Plan<A> {
    /// Reads a plan from its text, in any form of JSON.
    ///
    /// # Errors
    /// When the text is no plan, or one of another version.
    pub fn read(text: &str) -> Result<Self, PlanError> {
        #[derive(Deserialize)]
        struct Head {
            schema: u64,
        }
        let head: Head = serde_json::from_str(text).map_err(PlanError::Form)?;
        if head.schema != u64::from(PLAN_SCHEMA) {
            return Err(PlanError::Schema { found: head.schema });
        }
        serde_json::from_str(text).map_err(PlanError::Form)
    }

    /// The plan's canonical form.
    ///
    /// # Errors
    /// When what was asked for has no form as JSON.
    pub fn canonical(&self) -> Result<String, PlanError> {
        serde_json::to_string(self).map_err(PlanError::Form)
    }

    /// The plan as JSON for people.
    ///
    /// # Errors
    /// As [`Plan::canonical`].
    pub fn pretty(&self) -> Result<String, PlanError> {
        serde_json::to_string_pretty(self).map_err(PlanError::Form)
    }

    /// The plan's identity: the SHA-256 of its canonical form, in hexadecimal digits.
    ///
    /// # Errors
    /// As [`Plan::canonical`].
    pub fn sha256(&self) -> Result<String, PlanError> {
        Ok(sha256(self.canonical()?.as_bytes()))
    }
}

/// The SHA-256 of some bytes, in hexadecimal digits.
#[must_use]
pub fn sha256(bytes: &[u8]) -> String {
    hexadecimal(sum(&SHA256, bytes).as_ref())
}

/// The SHA-256 of all bytes of a reader.
///
/// # Errors
/// The reader's.
pub fn sha256_of(mut reader: impl Read) -> io::Result<String> {
    let mut context = Context::new(&SHA256);
    let mut buffer = vec![0; 1 << 18];
    loop {
        match reader.read(&mut buffer)? {
            0 => return Ok(hexadecimal(context.finish().as_ref())),
            length => context.update(&buffer[..length]),
        }
    }
}

impl Listed {
    /// The list of all experiments of a run with this number of repetitions.
    #[must_use]
    pub fn all(experiments: &[Experiment], repetitions: u32) -> Vec<Self> {
        by_steps(experiments, steps_in_words, |experiment, steps| {
            Self::new(experiment, repetitions, steps)
        })
    }

    fn new(experiment: &Experiment, repetitions: u32, steps: &str) -> Self {
        // Real disks may have other names when the run is resumed.
        let mut nameless = experiment.clone();
        if !nameless.host.is_empty() {
            nameless.disks = (0..nameless.disks.len())
                .map(|one| one.to_string())
                .collect();
        }
        let mut text = nameless.plan_with(steps);
        for setting in &nameless.subject.settings {
            let _ = writeln!(text, "{} = {}", setting.name, setting.value);
        }
        Self {
            label: experiment.label(repetitions),
            sha256: sha256(text.as_bytes()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> Plan<String> {
        Plan {
            schema: PLAN_SCHEMA,
            asked: "quick".to_owned(),
            experiments: vec![Listed {
                label: "md, strict".to_owned(),
                sha256: sha256(b"steps"),
            }],
            files: [("./own.toml".to_owned(), "schema = 1\n".to_owned())].into(),
        }
    }

    #[test]
    fn a_digest_is_that_of_the_standard() {
        // FIPS 180-2, appendix B.1.
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(sha256(b"abc"), expected);
        assert_eq!(sha256_of(&b"abc"[..]).expect("read"), expected);
    }

    #[test]
    fn a_plan_is_the_same_in_whatever_form_it_was_read() {
        let plan = plan();
        let canonical = plan.canonical().expect("a form");
        assert_eq!(
            canonical,
            r#"{"schema":1,"asked":"quick","experiments":[{"label":"md, strict","sha256":"#
                .to_owned()
                + &format!("\"{}\"", sha256(b"steps"))
                + r#"}],"files":{"./own.toml":"schema = 1\n"}}"#
        );
        let pretty = plan.pretty().expect("a form");
        assert_ne!(pretty, canonical);
        for text in [&canonical, &pretty] {
            let read = Plan::<String>::read(text).expect("a plan");
            assert_eq!(read, plan);
            assert_eq!(read.sha256().ok(), plan.sha256().ok());
        }
        let mut other = plan.clone();
        other
            .files
            .insert("./own.toml".to_owned(), "schema = 1".to_owned());
        assert_ne!(other.sha256().ok(), plan.sha256().ok());
    }

    #[test]
    fn what_is_no_plan_is_refused_with_its_place() {
        let refuse = |text: &str| {
            let error = Plan::<String>::read(text).expect_err("no plan");
            error.to_string()
        };
        let newer = plan()
            .canonical()
            .expect("a form")
            .replace("\"schema\":1", "\"schema\":2");
        assert_eq!(
            refuse(&newer),
            "the plan has schema 2, this raidlab reads schema 1"
        );
        insta::assert_snapshot!(
            [
                refuse(""),
                refuse("[reads]\nrw=read\n"),
                refuse("{\n  \"rows\": []\n}"),
                refuse("{\n  \"schema\": 1,\n  \"wish\": 2\n}"),
            ]
            .join("\n")
        );
    }
}
