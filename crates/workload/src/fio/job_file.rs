//! The reader of fio's job files.
//!
//! The rules are those of `__parse_jobs_ini` in fio's init.c: `[name]` starts a
//! job, a name that begins with `global` starts defaults for the jobs after
//! it, `;` and `#` start a comment anywhere in a line, a line is `option=value`
//! or a bare `option`. `include FILE` puts the lines of another file in its
//! place, where the user allows it.

use super::error::{JobFileError, Place};
use super::options::{FioJob, FioJobs, FioOption};
use super::permission::{Permission, judge};
use super::reader::{Reader, split};

/// The largest depth of files that include files.
const DEEPEST: usize = 16;

/// A function that returns the text of an included file, by the name in the job file.
pub type Includes<'a> = &'a dyn Fn(&str) -> Result<String, String>;

impl FioJobs {
    /// Reads a job file. `name` is its name in errors and notes, `text` its content; `includes`
    /// opens the files that it includes, if the user allows that.
    ///
    /// # Errors
    /// The first error, or forbidden option, with its line and option.
    pub fn from_job_file(
        name: &str,
        text: &str,
        permission: &Permission,
        includes: Includes<'_>,
    ) -> Result<Self, JobFileError> {
        let mut sections = Sections {
            reader: Reader::new(permission),
            permission,
            includes,
            defaults: Vec::new(),
            open: None,
            jobs: Vec::new(),
        };
        sections.lines(name, text, 0)?;
        sections.close();
        Ok(Self {
            name: name.to_owned(),
            jobs: sections.jobs,
            notes: sections.reader.notes,
            processes_before: 0,
        })
        .and_then(Self::checked)
    }

    pub(super) fn checked(self) -> Result<Self, JobFileError> {
        if self.jobs.is_empty() {
            return Err(JobFileError::NoJob { name: self.name });
        }
        Ok(self)
    }
}

/// The state of reading a job file.
struct Sections<'a> {
    reader: Reader<'a>,
    permission: &'a Permission,
    includes: Includes<'a>,
    /// The options of `[global]` sections so far.
    defaults: Vec<FioOption>,
    /// The current section, until its last line is read.
    open: Option<FioJob>,
    jobs: Vec<FioJob>,
}

impl Sections<'_> {
    fn lines(&mut self, name: &str, text: &str, depth: usize) -> Result<(), JobFileError> {
        for (index, line) in text.lines().enumerate() {
            let place = Place::Line {
                file: name.to_owned(),
                line: index + 1,
            };
            let line = line.split([';', '#']).next().unwrap_or_default().trim();
            if line.is_empty() {
                continue;
            }
            if line.starts_with('[') {
                self.close();
                self.open = Some(section(line, place, self.permission)?);
                continue;
            }
            if line.split_whitespace().next() == Some("include") {
                self.include(line, place, depth)?;
                continue;
            }
            let Some(section) = &mut self.open else {
                return Err(JobFileError::OutsideSection {
                    place,
                    text: line.to_owned(),
                });
            };
            let (option, value) = split(line);
            let option = self.reader.option(option, value, place)?;
            section.options.extend(option);
        }
        Ok(())
    }

    fn include(&mut self, line: &str, place: Place, depth: usize) -> Result<(), JobFileError> {
        if !self.permission.allows_include() {
            return Err(JobFileError::Include {
                place,
                text: line.to_owned(),
            });
        }
        let name = line.trim_start_matches("include").trim();
        let unreadable = |reason: String| JobFileError::Included {
            place: place.clone(),
            file: name.to_owned(),
            reason,
        };
        if depth == DEEPEST {
            let reason = format!("more than {DEEPEST} files include each other");
            return Err(unreadable(reason));
        }
        let text = (self.includes)(name).map_err(unreadable)?;
        self.lines(name, &text, depth + 1)
    }

    fn close(&mut self) {
        let Some(mut section) = self.open.take() else {
            return;
        };
        // fio sorts a section's options, so `kb_base` also applies to sizes before it. The options
        // of a command line, which real benches use, are not sorted.
        section
            .options
            .sort_by_key(|option| option.name != "kb_base");
        let name = section.section.as_deref().unwrap_or_default();
        if name.starts_with("global") {
            self.defaults.append(&mut section.options);
        } else {
            section.options.splice(0..0, self.defaults.iter().cloned());
            self.jobs.push(section);
        }
    }
}

/// Begins the section of a line.
fn section(line: &str, place: Place, permission: &Permission) -> Result<FioJob, JobFileError> {
    let name = line
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    let named = name.map(str::trim).filter(|name| !name.is_empty());
    let Some(name) = named.filter(|name| !name.contains(char::is_control)) else {
        return Err(JobFileError::SectionHeader {
            place,
            text: line.to_owned(),
        });
    };
    judge("name", Some(name), permission).map_err(|cause| JobFileError::Option {
        place: place.clone(),
        option: format!("[{name}]"),
        cause: Box::new(cause),
    })?;
    Ok(FioJob {
        section: Some(name.to_owned()),
        place,
        options: Vec::new(),
    })
}
