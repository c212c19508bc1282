//! Records of a log's subject as a whole: the machine, the array, its settings, and events.

use super::Context;
use super::look::Look;
use raidlab_store::{CommandRecord, EventRecord, Observation, Records, Series, Setting, fact};
use raidlab_units::lists;

impl Context<'_> {
    fn observation(&self, name: &str, value: &str, unit: &str, source: &str) -> Observation {
        let source = format!("{}: {source}", self.source);
        Observation::new(&self.scope, name, value, unit, source)
    }

    /// The records that belong to the subject as a whole.
    pub(super) fn records(&self) -> Records {
        let mut records = Records::default();
        for (name, value, unit, source) in &self.log.machine.facts {
            let one = self.observation(name, value, unit, source);
            records.observations.push(one);
        }
        self.array(&mut records);
        self.settings(&mut records);
        self.time_line(&mut records);
        if let Some(script) = self.script {
            let build = script.build.iter();
            records
                .commands
                .extend(build.map(|command| self.command(command, 0)));
        }
        records
    }

    fn array(&self, records: &mut Records) {
        let Some(look) = self.log.looks.iter().flatten().next() else {
            return;
        };
        let mut add = |name: &str, value: &str, unit: &str| {
            let one = self.observation(name, value, unit, look.system);
            records.observations.push(one);
        };
        add(fact::ARRAY_SYSTEM, look.system, "");
        add(fact::ARRAY_LEVEL, &look.level, "");
        if let Some(bytes) = look.capacity_bytes {
            add(fact::ARRAY_CAPACITY_BYTES, &bytes.to_string(), "bytes");
        }
        if let Some(bitmap) = look.bitmap {
            add(
                fact::ARRAY_BITMAP,
                if bitmap { "internal" } else { "none" },
                "",
            );
        }
        for (slot, member) in self.log.members.iter().enumerate() {
            add(&fact::member_device(slot), member, "");
        }
        let copied = self
            .log
            .looks
            .iter()
            .flatten()
            .any(|look| look.percent.is_some());
        if let (true, Some(bytes)) = (copied, look.capacity_bytes) {
            add(fact::SYNC_MEMBER_BYTES, &bytes.to_string(), "bytes");
        }
    }

    /// Adds the settings as read back, beside those that the script requested.
    fn settings(&self, records: &mut Records) {
        let none = std::collections::BTreeMap::new();
        let asked = self.script.map_or(&none, |script| &script.asked);
        let mut found = self.found_settings();
        found.extend(
            asked
                .keys()
                .filter(|name| !matches!(name.as_str(), "vfs.zfs.prefetch_disable"))
                .filter(|name| !found.iter().any(|(known, ..)| known == *name))
                .filter_map(|name| {
                    let look = self.log.looks.iter().flatten().next()?;
                    let bitmap = look.bitmap.filter(|_| name == "bitmap")?;
                    let bitmap = if bitmap { "internal" } else { "none" };
                    Some((name.clone(), bitmap.to_owned(), "mdstat"))
                })
                .collect::<Vec<_>>(),
        );
        for (name, value, source) in found {
            let mut add = |what: &str, value: &str, source: &str| {
                let name = fact::setting(&name, what);
                records
                    .observations
                    .push(self.observation(&name, value, "", source));
            };
            add(fact::outcome::FOUND, &value, source);
            if let Some(asked) = asked.get(&name) {
                let script = self.script.map_or("", |script| script.script.as_str());
                add(fact::outcome::ASKED, asked, script);
                let applied = if *asked == value {
                    fact::TRUE
                } else {
                    fact::FALSE
                };
                add(fact::outcome::APPLIED, applied, source);
            }
            let scope = format!("subject {}", self.scope.subject);
            let source = format!("{}: {source}", self.source);
            records
                .settings
                .push(Setting::new(scope, name, value, source));
        }
    }

    /// The settings as read back; with ZFS the properties of the volume, else those of the pool.
    fn found_settings(&self) -> Vec<(String, String, &'static str)> {
        const NAMES: &str = "primarycache secondarycache compression dedup checksum sync \
            volblocksize recordsize atime logbias copies ashift";
        let properties = &self.log.machine.properties;
        let volume = properties.iter().find(|one| one.name == "volsize");
        let owner = volume.or(properties.last()).map(|one| one.owner.as_str());
        let own = properties
            .iter()
            .filter(|one| Some(one.owner.as_str()) == owner);
        let mut found: Vec<_> = own
            .filter(|one| lists(NAMES, &one.name))
            .map(|one| (one.name.clone(), one.value.clone(), "zfs get"))
            .collect();
        let look = self.log.looks.iter().flatten().next();
        for (name, value) in look.iter().flat_map(|look| &look.settings) {
            found.push(((*name).to_owned(), value.clone(), "list"));
        }
        found
    }

    fn time_line(&self, records: &mut Records) {
        let looks = self.log.timed_looks();
        let mut points: Vec<(u64, f64)> = Vec::new();
        for (at, look) in &looks {
            points.extend(look.percent.map(|percent| (*at, percent)));
        }
        if !points.is_empty() {
            records.series.push(Series {
                scope: self.scope.clone(),
                name: fact::series::SYNC_PERCENT.to_owned(),
                unit: "percent".to_owned(),
                points,
            });
        }
        for pair in looks.windows(2) {
            let [(_, before), (at, after)] = pair else {
                continue;
            };
            self.change(before, after, *at, records);
        }
    }

    /// Adds the events between two looks.
    fn change(&self, before: &Look, after: &Look, at: u64, records: &mut Records) {
        let mut event = |kind: &str, member: Option<usize>, text: String| {
            records.events.push(EventRecord {
                scope: self.scope.clone(),
                at_ns: at,
                kind: kind.to_owned(),
                member: member.and_then(|slot| u32::try_from(slot).ok()),
                text,
            });
        };
        let (mut removed, mut inserted) = (false, false);
        for (slot, member) in self.log.members.iter().enumerate() {
            let there =
                |look: &Look| look.in_sync.contains(member) || look.syncing.contains(member);
            if there(before) && !there(after) {
                removed = true;
                event("remove", Some(slot), format!("{member} is gone"));
            }
            let is_new = !there(before) && there(after);
            let is_copied = before.in_sync.contains(member) && after.syncing.contains(member);
            if is_new || is_copied {
                inserted = true;
                event("insert", Some(slot), format!("{member} is back"));
            }
        }
        if before.activity.is_none() && after.activity.is_some() {
            event("sync-start", None, format!("{} begins", after.activity()));
        }
        if before.activity.is_some() && after.activity.is_none() {
            event("sync-end", None, format!("{} is over", before.activity()));
        }
        if let Some(script) = self.script {
            for (happened, commands) in [(removed, &script.remove), (inserted, &script.insert)] {
                let commands = commands.iter().filter(|_| happened);
                records
                    .commands
                    .extend(commands.map(|command| self.command(command, at)));
            }
        }
    }

    fn command(&self, command: &str, at_ns: u64) -> CommandRecord {
        CommandRecord {
            scope: self.scope.clone(),
            at_ns,
            command: command.to_owned(),
            code: Some(0),
            ..CommandRecord::default()
        }
    }
}
