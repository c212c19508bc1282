//! The commands of the 2015 comparison's scripts, which its logs do not repeat.

use crate::suite::Job;
use serde::Deserialize;
use std::collections::BTreeMap;

const SCRIPTS: &str = include_str!("../data/scripts-2015.toml");

#[derive(Deserialize)]
struct Document {
    subject: Vec<Script>,
}

/// The script by which one subject was measured.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Script {
    name: String,
    /// The name of the script's file, as settings give their source.
    pub(super) script: String,
    device: String,
    queue: String,
    pub(super) build: Vec<String>,
    pub(super) remove: Vec<String>,
    pub(super) insert: Vec<String>,
    /// The settings that the script requested.
    #[serde(default)]
    pub(super) asked: BTreeMap<String, String>,
}

impl Script {
    /// The script of a subject, if it has one.
    pub(super) fn of(subject: &str) -> Result<Option<Self>, toml::de::Error> {
        let document: Document = toml::from_str(SCRIPTS)?;
        let mut scripts = document.subject.into_iter();
        Ok(scripts.find(|script| script.name == subject))
    }

    /// fio's options of a job, as this script writes them.
    pub(super) fn options(&self, job: &Job) -> Vec<(String, String)> {
        let mut options = Vec::new();
        for (name, value) in job.streams.first().into_iter().flatten() {
            if name != "iodepth" || job.is_file {
                options.push((name.clone(), value.clone()));
                continue;
            }
            for word in self.queue.split_whitespace() {
                let word = word.trim_start_matches("--");
                let (name, value) = word.split_once('=').unwrap_or((word, "1"));
                let value = if value == "N" {
                    job.queue_depth().to_string()
                } else {
                    value.to_owned()
                };
                options.push((name.to_owned(), value));
            }
        }
        options
    }

    /// The command that ran a job; stream jobs are in files `2sr.job` and so on.
    pub(super) fn command(&self, label: &str, job: &Job) -> String {
        if job.is_file {
            return format!("fio {}sr.job", job.streams.len());
        }
        let switches = ["group_reporting", "thread"];
        let mut words = vec![
            "fio".to_owned(),
            format!("--name={label}"),
            format!("--filename={}", self.device),
        ];
        for (name, value) in self.options(job) {
            words.push(if switches.contains(&name.as_str()) {
                format!("--{name}")
            } else {
                format!("--{name}={value}")
            });
        }
        words.join(" ")
    }
}
