//! Facts in a log about the machine, its disks and ZFS's properties: `uname -a`, `hdparm -i`,
//! `geom disk list`, `zpool get`, `zfs get`.

use super::look::{block, is_of_list};
use raidlab_store::fact::{self, disk_property};
use raidlab_systems::array::geom::parse_list;
use raidlab_systems::array::zfs::properties::{Property, parse_properties};

/// A fact: its name, value, unit and source.
pub(super) type Read = (String, String, &'static str, &'static str);

/// The facts found between the jobs.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Machine {
    pub(super) facts: Vec<Read>,
    /// The disks by name, each with its model.
    pub(super) models: Vec<(String, String)>,
    pub(super) properties: Vec<Property>,
    /// Lines that were not understood, one of each kind.
    pub(super) unknown: Vec<String>,
}

impl Machine {
    /// The model of a disk or of the disk that a partition is on.
    pub(super) fn model(&self, device: &str) -> &str {
        let of = |name: &str| self.models.iter().find(|(known, _)| known == name);
        let whole = device.trim_end_matches(|last: char| last.is_ascii_digit());
        let found = of(device).or_else(|| of(whole));
        found.map_or("", |(_, model)| model.as_str())
    }

    fn add(
        &mut self,
        name: impl Into<String>,
        value: &str,
        unit: &'static str,
        source: &'static str,
    ) {
        let name = name.into();
        if !value.is_empty() && !self.facts.iter().any(|(known, ..)| *known == name) {
            self.facts.push((name, value.to_owned(), unit, source));
        }
    }

    fn disk(
        &mut self,
        device: &str,
        property: &str,
        value: &str,
        unit: &'static str,
        source: &'static str,
    ) {
        self.add(fact::disk(device, property), value, unit, source);
    }

    /// Reads the lines of one gap between jobs.
    pub(super) fn read(&mut self, lines: &[&str]) {
        let mut at = 0;
        while at < lines.len() {
            let line = lines[at];
            let rest = &lines[at..];
            let length = if line.starts_with("Linux ") || line.starts_with("FreeBSD ") {
                self.uname(line);
                1
            } else if line.starts_with("/dev/") && line.trim_end().ends_with(':') {
                self.hdparm(line.trim().trim_end_matches(':'), &rest[1..])
            } else if line.starts_with("Geom name:") {
                self.geom(rest)
            } else if line.starts_with("NAME ") && line.contains(" PROPERTY") {
                self.zfs(rest)
            } else if line.starts_with("Personalities") {
                block(rest, |line| line.starts_with("unused devices"), true)
            } else if line.trim_start().starts_with("pool: ") {
                block(rest, |line| line.starts_with("errors:"), true)
            } else {
                self.other(line);
                1
            };
            at += length.max(1);
        }
    }

    /// Reads `Linux ubuntu 3.16.0-31-generic #41-Ubuntu SMP ...`: kernel, machine, release, and on
    /// Linux often the distribution in the build's name.
    fn uname(&mut self, line: &str) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [kernel, _, release, ..] = words[..] else {
            return;
        };
        self.add(fact::OS_KERNEL, kernel, "", "uname");
        self.add(fact::OS_RELEASE, release, "", "uname");
        let name = match kernel {
            "Linux" => words
                .get(3)
                .and_then(|build| build.split_once('-'))
                .map(|(_, name)| name),
            system => Some(system),
        };
        if let Some(name) = name {
            self.add(fact::OS_NAME, name, "", "uname");
        }
        if kernel == "FreeBSD" {
            let version = release.split('-').next().unwrap_or(release);
            self.add(fact::OS_VERSION, version, "", "uname");
        }
    }

    /// Reads `hdparm -i`: pairs of names and values, until the line on modes.
    fn hdparm(&mut self, device: &str, lines: &[&str]) -> usize {
        const SOURCE: &str = "hdparm -i";
        let device = device.trim_start_matches("/dev/");
        let belongs = |line: &&&str| line.trim().is_empty() || line.starts_with(' ');
        let length = lines.iter().take_while(belongs).count();
        for pair in lines[..length]
            .iter()
            .flat_map(|line| line.split([',', ' ']))
        {
            let Some((key, value)) = pair.split_once('=') else {
                continue;
            };
            match key {
                "FwRev" => self.disk(device, disk_property::FIRMWARE, value, "", SOURCE),
                "SerialNo" => self.disk(device, disk_property::SERIAL, value, "", SOURCE),
                "LBAsects" => {
                    let bytes = value
                        .parse::<u64>()
                        .ok()
                        .and_then(|sectors| sectors.checked_mul(512));
                    if let Some(bytes) = bytes {
                        self.disk(
                            device,
                            disk_property::SIZE_BYTES,
                            &bytes.to_string(),
                            "bytes",
                            SOURCE,
                        );
                    }
                }
                "WriteCache" => {
                    let cache = if value == "enabled" {
                        "write back"
                    } else {
                        "write through"
                    };
                    self.disk(device, disk_property::WRITE_CACHE, cache, "", SOURCE);
                }
                _ => {}
            }
        }
        // A model may have blanks in it.
        let model = lines[..length].iter().find_map(|line| {
            let (_, rest) = line.split_once("Model=")?;
            rest.split(',').next()
        });
        if let Some(model) = model {
            self.disk(device, disk_property::MODEL, model.trim(), "", SOURCE);
            self.models
                .push((device.to_owned(), model.trim().to_owned()));
        }
        length + 1
    }

    /// Reads the disks of `geom disk list`; lists of arrays are read elsewhere.
    fn geom(&mut self, lines: &[&str]) -> usize {
        const SOURCE: &str = "geom disk list";
        let length = block(lines, |line| !is_of_list(line), false);
        for geom in parse_list("log", &lines[..length].join("\n")).unwrap_or_default() {
            let Some(disk) = geom
                .providers
                .first()
                .filter(|disk| disk.fields.get("descr").is_some())
            else {
                continue;
            };
            for (key, property, unit) in [
                ("descr", disk_property::MODEL, ""),
                ("ident", disk_property::SERIAL, ""),
            ] {
                let value = disk.fields.get(key).unwrap_or_default();
                self.disk(&disk.name, property, value, unit, SOURCE);
            }
            for (key, property) in [
                ("Mediasize", disk_property::SIZE_BYTES),
                ("Sectorsize", disk_property::LOGICAL_SECTOR_BYTES),
                ("Stripesize", disk_property::PHYSICAL_SECTOR_BYTES),
            ] {
                if let Some(bytes) = disk.fields.number(key).filter(|bytes| *bytes > 0) {
                    self.disk(&disk.name, property, &bytes.to_string(), "bytes", SOURCE);
                }
            }
            let model = disk.fields.get("descr").unwrap_or_default().to_owned();
            self.models.push((disk.name.clone(), model));
        }
        length
    }

    /// Reads a table of `zpool get` or `zfs get`: the lines of one pool and its datasets.
    fn zfs(&mut self, lines: &[&str]) -> usize {
        let owner = |line: &str| line.split([' ', '/']).next().unwrap_or_default().to_owned();
        let pool = lines.get(1).map(|line| owner(line)).unwrap_or_default();
        let rows = lines.iter().skip(1);
        let length = 1 + rows
            .take_while(|line| !pool.is_empty() && owner(line) == pool)
            .count();
        let text = lines[..length].join("\n");
        self.properties
            .extend(parse_properties("log", &text).unwrap_or_default());
        length
    }

    /// Handles any other line. A few kinds are known to hold no facts.
    fn other(&mut self, line: &str) {
        let line = line.trim();
        let is_date = super::date(line).is_some();
        let is_speed = line.ends_with("(system)") || line.ends_with("(local)");
        if line.is_empty() || is_date || is_speed {
            return;
        }
        // One row stands for all rows of a table.
        let kind = |line: &str| {
            let first = line.split_whitespace().next().unwrap_or_default();
            let end = first
                .find(|c: char| !c.is_alphabetic())
                .unwrap_or(first.len());
            first[..end].to_owned()
        };
        if !self.unknown.iter().any(|known| kind(known) == kind(line)) {
            self.unknown.push(line.to_owned());
        }
    }
}
