//! The text around a tool's output in its file: a look at the array, the size of memory. People
//! paste `cat /proc/mdstat` above a result, and it can decide what the result is worth.

use crate::log::{Look, looks};
use raidlab_store::{Measurement, Observation, Scope, fact};

/// The state of the machine around a job.
#[derive(Debug, Default)]
pub(crate) struct Surroundings {
    memory_bytes: Option<u64>,
    look: Option<Look>,
    /// The state in mdstat's letters, or in ZFS's word for the whole pool.
    state: Option<String>,
}

impl Surroundings {
    /// Reads a whole file; lines of tools' output are ignored.
    pub(crate) fn read(text: &str) -> Self {
        let lines: Vec<&str> = text.lines().collect();
        let mut looks = looks(&lines);
        // Of several looks the one with background activity counts.
        let active = looks.iter().position(|look| look.activity.is_some());
        let look = active.or_else(|| looks.len().checked_sub(1));
        Self {
            memory_bytes: lines.iter().find_map(|line| memory(line)),
            look: look.map(|place| looks.swap_remove(place)),
            state: lines.iter().find_map(|line| state(line)),
        }
    }

    /// Sets the array's state in a row.
    pub(crate) fn describe(&self, row: &mut Measurement) {
        let Some(look) = &self.look else {
            return;
        };
        if let Some(state) = &self.state {
            row.array_state_start.clone_from(state);
        }
        row.sync_percent_start = look.percent;
    }

    /// The state as facts of a scope.
    pub(crate) fn facts(&self, scope: &Scope) -> Vec<Observation> {
        let mut all = Vec::new();
        let mut add = |name: &str, value: String, unit: &str| {
            let source = "the file, around the result";
            all.push(Observation::new(scope, name, value, unit, source));
        };
        if let Some(bytes) = self.memory_bytes {
            add(fact::MEMORY_TOTAL_BYTES, bytes.to_string(), "bytes");
        }
        if let Some(look) = &self.look {
            add(fact::ARRAY_SYSTEM, look.system.to_owned(), "");
            if !look.level.is_empty() {
                add(fact::ARRAY_LEVEL, look.level.clone(), "");
            }
            add(fact::SYNC_ACTIVE_START, look.activity().to_owned(), "");
        }
        all
    }
}

/// Reads `[2/1] [U_]` of mdstat, ` state: DEGRADED` of a pool.
fn state(line: &str) -> Option<String> {
    if let Some(word) = line.trim().strip_prefix("state: ") {
        return Some(word.to_owned());
    }
    let last = line.split_whitespace().last()?;
    let letters = last.strip_prefix('[')?.strip_suffix(']')?;
    let known = !letters.is_empty() && letters.bytes().all(|byte| matches!(byte, b'U' | b'_'));
    (known && line.contains(" blocks ")).then(|| last.to_owned())
}

/// Reads the size of memory from `MemTotal: 16314388 kB` of /proc/meminfo,
/// `hw.physmem: 17179869184` of a FreeBSD sysctl, `RAM is 7976M` of bonnie++'s warning, `-r 4096`
/// of its command.
fn memory(line: &str) -> Option<u64> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let after = |word: &str| {
        let place = words.iter().position(|known| *known == word)?;
        words.get(place + 1).copied()
    };
    if let Some(kibibytes) = after("MemTotal:") {
        return kibibytes.parse::<u64>().ok()?.checked_mul(1024);
    }
    if let Some(bytes) = after("hw.physmem:") {
        return bytes.parse().ok();
    }
    let mebibytes = if let Some((_, rest)) = line.split_once("RAM is ") {
        let end = rest.find('M')?;
        rest[..end].parse::<u64>().ok()?
    } else if words.iter().any(|word| word.ends_with("bonnie++")) {
        after("-r")?.parse().ok()?
    } else {
        return None;
    };
    mebibytes.checked_mul(1 << 20)
}

#[cfg(test)]
mod tests {
    use super::{Surroundings, memory};
    use raidlab_store::{Scope, fact};

    #[test]
    fn memory_is_found_in_what_people_paste() {
        for (line, bytes) in [
            ("MemTotal:       16314388 kB", Some(16_314_388 * 1024)),
            ("hw.physmem: 17179869184", Some(17_179_869_184)),
            (
                "File size should be double RAM for good results, RAM is 7976M.",
                Some(7976 << 20),
            ),
            ("$ bonnie++ -d /mnt -s 8g -r 4096 -u root", Some(4096 << 20)),
            ("rm -r 4096", None),
            ("", None),
        ] {
            assert_eq!(memory(line), bytes, "{line}");
        }
    }

    #[test]
    fn an_array_that_is_looked_at_before_the_result_is_its_own() {
        let text = "Personalities : [raid1]\n\
            md0 : active raid1 sdc1[2] sdb1[0]\n      \
            3907017472 blocks super 1.2 [2/1] [U_]\n      \
            [==>..................]  recovery = 12.6% (492388352/3907017472) finish=325.6min speed=174766K/sec\n      \n\
            unused devices: <none>\n{ \"fio version\" : \"fio-3.33\" }\n";
        let around = Surroundings::read(text);
        assert_eq!(around.state.as_deref(), Some("[U_]"));
        let facts = around.facts(&Scope::default());
        let sync = facts.iter().find(|one| one.name == fact::SYNC_ACTIVE_START);
        assert_eq!(sync.map(|one| one.value.as_str()), Some("recovery"));
    }
}
