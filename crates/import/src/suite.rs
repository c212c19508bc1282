//! The jobs of the 2015 comparison, read from its suite's file: imported rows have the names,
//! titles and classes of measured and modelled ones.

use raidlab_units::parse_bytes;
use serde::Deserialize;

#[derive(Deserialize)]
struct Document {
    name: String,
    title: String,
    step: Vec<Step>,
}

#[derive(Deserialize)]
struct Step {
    job: Option<String>,
    #[serde(default)]
    title: String,
    #[serde(default)]
    class: String,
    fio: Option<String>,
    fio_job: Option<String>,
}

/// The fields of a suite that an import needs.
#[derive(Debug, Clone)]
pub(crate) struct Suite {
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) jobs: Vec<Job>,
}

/// A job of the suite.
#[derive(Debug, Clone)]
pub(crate) struct Job {
    pub(crate) sequence: u32,
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) class: String,
    /// fio's options of each stream, in order.
    pub(crate) streams: Vec<Vec<(String, String)>>,
    /// Whether the job is given as a job file.
    pub(crate) is_file: bool,
}

impl Suite {
    /// The suite of the 2015 comparison.
    pub(crate) fn mirror_2015() -> Result<Self, toml::de::Error> {
        let document: Document =
            toml::from_str(raidlab_data::text("suites", "mirror-2015").unwrap_or_default())?;
        let jobs = document
            .step
            .into_iter()
            .filter_map(|step| {
                let streams = match (&step.fio, &step.fio_job) {
                    (Some(line), _) => vec![line.split_whitespace().filter_map(option).collect()],
                    (None, Some(file)) => sections(file),
                    (None, None) => Vec::new(),
                };
                Some((
                    step.job?,
                    step.title,
                    step.class,
                    streams,
                    step.fio_job.is_some(),
                ))
            })
            .zip(0..)
            .map(|((name, title, class, streams, is_file), sequence)| Job {
                sequence,
                name,
                title,
                class,
                streams,
                is_file,
            })
            .collect();
        Ok(Self {
            name: document.name,
            title: document.title,
            jobs,
        })
    }

    pub(crate) fn job(&self, name: &str) -> Option<&Job> {
        self.jobs.iter().find(|job| job.name == name)
    }
}

impl Job {
    /// An option of the job's first stream.
    pub(crate) fn option(&self, name: &str) -> Option<&str> {
        value(self.streams.first()?, name)
    }

    /// The number of I/Os in flight, all streams together.
    pub(crate) fn queue_depth(&self) -> u32 {
        let depths = self.streams.iter().map(|stream| {
            let depth = value(stream, "iodepth").and_then(|depth| depth.parse().ok());
            depth.unwrap_or(1)
        });
        depths.fold(0, u32::saturating_add).max(1)
    }

    /// The bytes that all streams move, where that ends them.
    pub(crate) fn size_bytes(&self) -> Option<u64> {
        let sizes = self.streams.iter().map(|stream| bytes(stream, "size"));
        sizes.sum()
    }

    /// The bytes that the job can touch.
    pub(crate) fn region_bytes(&self) -> Option<u64> {
        self.size_bytes().or_else(|| {
            let region = bytes(self.streams.first()?, "filesize")?;
            // fio ends the region at the end of the file.
            region.checked_sub(self.offset_bytes())
        })
    }

    pub(crate) fn offset_bytes(&self) -> u64 {
        let first = self.streams.first();
        first
            .and_then(|stream| bytes(stream, "offset"))
            .unwrap_or(0)
    }
}

fn value<'a>(options: &'a [(String, String)], name: &str) -> Option<&'a str> {
    let found = options.iter().rfind(|(known, _)| known == name);
    found.map(|(_, value)| value.as_str())
}

fn bytes(options: &[(String, String)], name: &str) -> Option<u64> {
    Some(parse_bytes(value(options, name)?).ok()?.0)
}

/// Splits `--bs=4k`, or `thread` without a value.
fn option(word: &str) -> Option<(String, String)> {
    let word = word.trim().trim_start_matches("--");
    let (name, value) = word.split_once('=').unwrap_or((word, "1"));
    (!name.is_empty()).then(|| (name.to_owned(), value.to_owned()))
}

/// The options of each section of a job file, the global ones first.
fn sections(file: &str) -> Vec<Vec<(String, String)>> {
    let mut global = Vec::new();
    let mut all: Vec<Vec<(String, String)>> = Vec::new();
    for line in file.lines().map(str::trim) {
        if line.starts_with('[') {
            if line != "[global]" {
                all.push(global.clone());
            }
        } else if let Some(option) = option(line) {
            all.last_mut().unwrap_or(&mut global).push(option);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::Suite;

    #[test]
    fn jobs_of_the_suite_have_their_sizes() {
        let suite = Suite::mirror_2015().expect("the suite is well-formed");
        assert_eq!(suite.jobs.len(), 29);
        let job = |name| suite.job(name).expect("a job of the suite");
        let tib = 1_u64 << 40;
        assert_eq!(job("1").region_bytes(), Some(3 * tib));
        assert_eq!(job("3").size_bytes(), Some(tib));
        assert_eq!(job("9").queue_depth(), 4);
        assert_eq!(job("9").offset_bytes(), 13 << 20);
        assert_eq!(job("20").size_bytes(), Some(4 << 30));
        assert_eq!(job("20").queue_depth(), 4);
        assert_eq!(job("29").sequence, 28);
        assert_eq!(job("29").option("runtime"), Some("20"));
    }
}
