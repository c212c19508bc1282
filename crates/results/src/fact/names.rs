//! The names of facts that there are, for names that people write.

use super::*;
use crate::Operation;
use std::sync::LazyLock;

/// The facts whose whole name is known.
const WHOLE: &[&str] = &[
    MEMORY_TOTAL_BYTES,
    OS_NAME,
    OS_VERSION,
    OS_KERNEL,
    OS_RELEASE,
    CPU_MODEL,
    CPU_COUNT,
    CPU_GOVERNOR,
    ARRAY_LEVEL,
    ARRAY_SYSTEM,
    ARRAY_CHUNK_BYTES,
    ARRAY_STRIPE_BYTES,
    ARRAY_MEMBER_BYTES_PER_BYTE,
    ARRAY_COPIES_ON_WRITE,
    ARRAY_CAPACITY_BYTES,
    ARRAY_BITMAP,
    ARRAY_RECORD_BYTES,
    ARRAY_AUXILIARY,
    COMPRESSION,
    COMPRESS_RATIO,
    DEDUPLICATION,
    DEDUPLICATION_RATIO,
    FILL_PERCENT,
    WRITTEN_PERCENT,
    FRAGMENTATION_PERCENT,
    FILESYSTEM_OPTIONS,
    FILESYSTEM_TYPE,
    FILESYSTEM_LAZY,
    FILESYSTEM_STRIPE_BYTES,
    JOB_ASKED_RUNTIME_NS,
    JOB_ASKED_SIZE_BYTES,
    JOB_WORKING_SET_BYTES,
    JOB_OFFSET_BYTES,
    JOB_DATA_PATTERN,
    JOB_ALLOWS_SYNC,
    JOB_ALLOWS_DEGRADED,
    FIO_JOBS,
    DD_ERROR,
    FIO_ERROR,
    FIO_SHORT_IOS,
    FIO_DROPPED_IOS,
    FIO_SHORTEST_RUNTIME_NS,
    FIO_LONGEST_RUNTIME_NS,
    FIO_SYSTEM_CPU_PERCENT,
    END_SYNC_NS,
    DD_RECORDS_IN_WHOLE,
    DD_RECORDS_IN_PARTIAL,
    DD_RECORDS_OUT_WHOLE,
    DD_RECORDS_OUT_PARTIAL,
    DD_PRINTED_BYTES_PER_SECOND,
    FIO_OPTIONS_UNTOLD,
    FIO_THINKING_PERCENT,
    FIO_IN_FLIGHT,
    FIO_ASKED_IN_FLIGHT,
    FIO_STREAMS_ON_ONE_REGION,
    FIO_DISKS,
    CONTRADICTION,
    BONNIE_FILES,
    BONNIE_FILES_ASKED,
    IOZONE_INCLUDES_FSYNC,
    IOZONE_INCLUDES_CLOSE,
    IOZONE_DIRECT,
    IOZONE_NOT_RUN,
    CACHES_DROPPED,
    ARC_HITS,
    ARC_MISSES,
    CACHE_READ_HITS,
    CACHE_READ_MISSES,
    CACHE_WRITE_HITS,
    CACHE_WRITE_MISSES,
    CACHE_PROMOTIONS,
    CACHE_DEMOTIONS,
    CACHE_DEVICE_IOS,
    LOG_DEVICE_IOS,
    SYNC_ACTIVE_START,
    SYNC_ACTIVE_END,
    ARRAY_HEALTH_START,
    ARRAY_HEALTH_END,
    SYNC_COPIED_BYTES,
    SYNC_MEMBER_BYTES,
    FOREIGN_BYTES,
    CPU_STEAL_PERCENT,
    CPU_PRESET,
    CPU_BUSY_PERCENT,
    CPU_USER_PERCENT,
    CPU_SYSTEM_PERCENT,
    CPU_INTERRUPT_PERCENT,
    CPU_THROTTLED,
    CLOCK_STEP_NS,
    FIRST_IO_NS,
    IDLE_WRITTEN_BYTES,
    UNWRITTEN_EXTENTS_PERCENT,
    MONITOR_PERIOD_NS,
];

/// The stand-in for the part of a name that is a device's, a program's or an option's own.
const OWN: &str = "*";

/// The names of families; where a part is not of the vocabulary, [`OWN`] stands for it.
static FAMILIES: LazyLock<Vec<String>> = LazyLock::new(|| {
    let mut all = vec![
        version(OWN),
        fio_option(OWN),
        fio_depth_level(OWN),
        dd_operand(OWN),
        cpu_thread_percent(OWN),
        cpu_for_percent(OWN),
        time_ns(OWN),
    ];
    all.extend(
        disk_property::ALL
            .iter()
            .map(|property| disk(OWN, property)),
    );
    for part in ["device", "role"] {
        all.push(format!("member.{OWN}.{part}"));
    }
    for what in [outcome::ASKED, outcome::FOUND, outcome::APPLIED] {
        all.extend([setting(OWN, what), option(OWN, what)]);
    }
    for moment in [moment::BEFORE_DROP, moment::BEFORE, moment::AFTER] {
        all.extend([
            cached_bytes(moment),
            dirty_bytes(moment),
            arc_size_bytes(moment),
            cache_dirty_bytes(moment),
        ]);
    }
    for what in [
        lock_part::PASSES,
        lock_part::CONTENDED,
        lock_part::WAIT_NS,
        lock_part::HOLD_NS,
    ] {
        all.push(lock(OWN, what));
    }
    for &op in Operation::ALL {
        for what in [rate_of::BYTES, rate_of::REQUESTS] {
            all.extend([fio_printed(op, what), fio_limit(op, what)]);
        }
        for what in [
            claim_part::VALUE,
            claim_part::PERCENT,
            claim_part::BASE,
            claim_part::WINNER,
        ] {
            all.extend([claim(op, "", what), claim(op, OWN, what)]);
        }
        all.push(bonnie_not_timed(op));
    }
    all
});

/// Whether a fact of the vocabulary has this name.
#[must_use]
pub fn is_known(name: &str) -> bool {
    let is_of = |family: &String| match family.split_once(OWN) {
        Some((begin, end)) => {
            let rest = name.strip_prefix(begin);
            let own = rest.and_then(|rest| rest.strip_suffix(end));
            let is_slot = |own: &str| own.bytes().all(|byte| byte.is_ascii_digit());
            own.is_some_and(|own| !own.is_empty() && (begin != "member." || is_slot(own)))
        }
        None => family == name,
    };
    WHOLE.contains(&name) || FAMILIES.iter().any(is_of)
}

/// The names that may be meant by `name`; in those of families stands what `name` has there.
pub fn like(name: &str) -> impl Iterator<Item = String> {
    let of_family = |family: &String| {
        let Some((begin, end)) = family.split_once(OWN) else {
            return Some(family.clone());
        };
        let rest = name.strip_prefix(begin)?;
        // The last words of the name are for the family's end, however they are spelt.
        let own = rest.rsplitn(end.matches('.').count() + 1, '.').last()?;
        Some(format!("{begin}{own}{end}")).filter(|_| !own.is_empty())
    };
    let whole = WHOLE.iter().map(|&known| known.to_owned());
    whole.chain(FAMILIES.iter().filter_map(of_family))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The texts of the constants that a source has.
    fn constants(source: &str) -> impl Iterator<Item = &str> {
        let texts = source.lines().filter_map(|line| {
            let (_, text) = line.strip_prefix("pub const ")?.split_once(": &str = \"")?;
            text.strip_suffix("\";")
        });
        texts.filter(|text| ![TRUE, FALSE].contains(text))
    }

    #[test]
    fn every_constant_is_a_known_name() {
        for name in constants(include_str!("../fact.rs")) {
            assert!(is_known(name), "{name}");
        }
        for property in constants(include_str!("disk_property.rs")) {
            assert!(is_known(&disk("sdb", property)), "{property}");
        }
    }

    #[test]
    fn families_are_open_where_names_are_not_ours_alone() {
        for name in [
            "disk.gpt/tank.0.smart.pending_sectors",
            "setting.vfs.zfs.prefetch_disable.found",
            "version.bonnie++",
            "member.11.role",
            "claim.read[16384k/64k].value",
            "memory.after.dirty_bytes",
        ] {
            assert!(is_known(name), "{name}");
        }
        for (name, meant) in [
            ("disk.sdb.modle", Some("disk.sdb.model")),
            ("setting.ashift.fuond", Some("setting.ashift.found")),
            ("member.0.devcie", Some("member.0.device")),
            ("claim.raed.value", Some("claim.read.value")),
            ("memory.total_byte", Some("memory.total_bytes")),
            ("member.x.device", None),
            ("disk..model", None),
            ("version.", None),
        ] {
            assert!(!is_known(name), "{name}");
            if let Some(meant) = meant {
                assert!(like(name).any(|known| known == meant), "{name}");
            }
        }
    }
}
