//! Every option of fio 2.1 to 3.4x: how it is spelled, what it can do to a
//! machine, and what the model makes of it.
//!
//! The ones that the model honours are in `modelled.rs`. Here are the others,
//! grouped by the reason that the user is told; and the options of both kinds
//! that no file may give unasked ([`Class`]).

use super::error::OptionError;
use super::modelled;
use super::permission::Permission;

/// What an option can do to the machine that fio runs on, as root.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// It shapes the load: sizes, order, depth, time. A file may give it.
    Load,
    /// It says where the load goes, or names something to read: files,
    /// devices, other machines. Where it goes is raidlab's to say.
    Place,
    /// It writes or changes something beside the target: logs, memory files,
    /// kernel settings, control groups.
    Elsewhere,
    /// It runs a program or foreign code, or decides as whom fio runs.
    Runs,
}

impl Class {
    /// The class in words that follow "it".
    #[must_use]
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::Load => "shapes the load",
            Self::Place => "says where the load goes or what is read",
            Self::Elsewhere => "writes or changes something beside the target",
            Self::Runs => "runs something, or says as whom",
        }
    }
}

/// What becomes of an option in the model.
#[derive(Debug, Clone, Copy)]
pub(super) enum Rule {
    /// Changes the job.
    Modelled(modelled::Setter),
    /// Changes nothing here; the reason is noted.
    WithoutEffect(&'static str),
    /// Would change the result; refused unless the value is fio's default.
    NotModelled {
        /// Why.
        reason: &'static str,
        /// Values that ask for nothing.
        harmless: &'static [&'static str],
    },
}

/// What the model makes of an option, for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Honoured {
    /// It does what fio does.
    Yes,
    /// It changes nothing in the model, for this reason.
    NoEffect(&'static str),
    /// The model refuses it, for this reason; real benches run it.
    No(&'static str),
}

/// One option of fio's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OptionFacts {
    /// fio's name and its other spellings.
    pub names: Vec<&'static str>,
    /// What it can do.
    pub class: Class,
    /// What the model makes of it.
    pub honoured: Honoured,
}

/// What an option's value is, where two spellings of it have to be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// A time.
    Time,
    /// A size, a number, or words.
    Other,
}

/// Every option, the modelled ones first, in the order of the tables.
#[must_use]
pub fn fio_options() -> Vec<OptionFacts> {
    let facts = |names: Vec<&'static str>, honoured| OptionFacts {
        class: class_of_name(names[0]),
        names,
        honoured,
    };
    let spellings = |group: &'static str| {
        group
            .split(' ')
            .map(|names| names.split('|').collect::<Vec<_>>())
    };
    let modelled = modelled::OPTIONS
        .iter()
        .map(|option| facts(option.names.to_vec(), Honoured::Yes));
    let without = WITHOUT_EFFECT.iter().flat_map(|(reason, names)| {
        spellings(names).map(|names| facts(names, Honoured::NoEffect(reason)))
    });
    let refused = NOT_MODELLED.iter().flat_map(|(reason, names)| {
        spellings(names).map(|names| facts(names, Honoured::No(reason)))
    });
    modelled.chain(without).chain(refused).collect()
}

/// fio's own name of an option that is written in any of its spellings, with
/// `-` or `_`; the text itself where fio has no such option.
#[must_use]
pub fn canonical_name(name: &str) -> String {
    let name = name.trim().replace('-', "_");
    let modelled = modelled::OPTIONS
        .iter()
        .find(|option| option.names.contains(&name.as_str()));
    if let Some(option) = modelled {
        return option.names[0].to_owned();
    }
    let grouped = WITHOUT_EFFECT.iter().chain(NOT_MODELLED);
    let mut spellings = grouped.flat_map(|(_, names)| names.split(' '));
    let found = spellings.find(|spelling| spelling.split('|').any(|known| known == name));
    let own = found.and_then(|spelling| spelling.split('|').next());
    own.map_or(name, str::to_owned)
}

/// What the value of an option is.
#[must_use]
pub fn unit(name: &str) -> Unit {
    if TIMES.contains(&canonical_name(name).as_str()) {
        Unit::Time
    } else {
        Unit::Other
    }
}

/// Whether `name` is an option of the fio program itself, which stands beside
/// job options on a command line only.
#[must_use]
pub fn is_program_option(name: &str) -> bool {
    lists(PROGRAM_OPTIONS, &name.replace('_', "-"))
}

/// The rule for an option, by any of its names.
pub(super) fn rule(name: &str) -> Option<Rule> {
    if let Some(option) = modelled::OPTIONS
        .iter()
        .find(|option| option.names.contains(&name))
    {
        return Some(Rule::Modelled(option.set));
    }
    if let Some((reason, _)) = WITHOUT_EFFECT.iter().find(|(_, names)| lists(names, name)) {
        return Some(Rule::WithoutEffect(reason));
    }
    let (reason, _) = NOT_MODELLED.iter().find(|(_, names)| lists(names, name))?;
    Some(Rule::NotModelled {
        reason,
        harmless: harmless(name),
    })
}

/// Values of an option that ask for nothing.
fn harmless(name: &str) -> &'static [&'static str] {
    let values = HARMLESS.iter().find(|(option, _)| *option == name);
    values.map_or(&[][..], |(_, values)| values)
}

/// Refuses an option that fio does not have, and one that a file may not give
/// unasked. `value` is as written, with raidlab's placeholders.
pub(super) fn judge(
    name: &str,
    value: Option<&str>,
    permission: &Permission,
) -> Result<(), OptionError> {
    if is_program_option(name) {
        return Err(OptionError::Program);
    }
    if rule(name).is_none() {
        return Err(OptionError::Unknown {
            nearest: nearest(name),
        });
    }
    if let Some(letter) = value.and_then(|value| value.chars().find(|one| one.is_control())) {
        return Err(OptionError::ControlLetter { letter });
    }
    let canonical = canonical_name(name);
    let class = class(name, value);
    if class == Class::Load || permission.allows(&canonical) {
        return Ok(());
    }
    Err(OptionError::NotAllowed {
        class,
        option: canonical,
    })
}

/// The class of an option, by any of its names, with this value.
pub(super) fn class(name: &str, value: Option<&str>) -> Class {
    class_of(&canonical_name(name), value.unwrap_or_default())
}

/// Whether an option names what the job runs on, which raidlab gives.
pub(super) fn is_target(name: &str) -> bool {
    lists(
        "filename directory filename_format opendir uri nfs_url libblkio_path",
        &canonical_name(name),
    )
}

/// The class of an option with this value; some options do harm only with
/// some values.
fn class_of(name: &str, value: &str) -> Class {
    match name {
        "filename" | "directory" if is_ours(value) => Class::Load,
        "ioengine" => engine_class(value),
        // `mmap:/file` keeps fio's buffers in a file of that name.
        "iomem" if value.contains(':') || value.contains('/') => Class::Elsewhere,
        // A pattern in single quotes is a file's contents.
        "buffer_pattern" | "verify_pattern" if value.contains('\'') => Class::Place,
        _ if harmless(name).contains(&value) => Class::Load,
        _ => class_of_name(name),
    }
}

/// The class of an option whatever its value.
fn class_of_name(name: &str) -> Class {
    let guarded = GUARDED.iter().find(|(_, names)| lists(names, name));
    guarded.map_or(Class::Load, |&(class, _)| class)
}

/// Whether a place is the one that raidlab gives, or inside it.
fn is_ours(value: &str) -> bool {
    ["{target}", "{file}"].iter().any(|ours| {
        let Some(rest) = value.strip_prefix(ours) else {
            return false;
        };
        let stays = rest.split('/').all(|part| part != "..");
        stays && (rest.is_empty() || rest.starts_with('/')) && !rest.contains(':')
    })
}

/// Engines that move data between fio and the target do nothing else; fio takes
/// a path for an engine too, and loads its code. A plain name that fio does not
/// know is no engine on any bench.
fn engine_class(value: &str) -> Class {
    if value.contains([':', '/', '.']) || value == "exec" {
        Class::Runs
    } else if lists(REMOTE_ENGINES, value) {
        Class::Place
    } else {
        Class::Load
    }
}

/// Engines that reach other machines or storage that fio is told of by name.
const REMOTE_ENGINES: &str = "net netsplice rdma rbd rados http nfs nbd gfapi gfapi_async libhdfs \
     libiscsi ime_psync ime_psyncv ime_aio dfs libblkio";

/// Options that are no shape of the load.
const GUARDED: &[(Class, &str)] = &[
    (
        Class::Place,
        "filename directory filename_format opendir allow_mounted_write read_iolog \
         merge_blktrace_file replay_redirect verify_state_load hostname interface port listen \
         donorname namenode clustername rbdname clientname conf pool cont volume brick \
         hdfsdirectory http_host http_user http_pass http_s3_key http_s3_keyid \
         http_s3_security_token http_swift_auth_token uri nfs_url libblkio_path \
         libblkio_pre_connect_props xnvme_dev_nsid",
    ),
    (
        Class::Elsewhere,
        "write_bw_log write_lat_log write_hist_log write_iops_log write_iolog verify_dump \
         verify_state_save ioscheduler cgroup cgroup_weight cgroup_nodelete lockmem",
    ),
    (
        Class::Runs,
        "exec_prerun exec_postrun program arguments std_redirect uid gid profile",
    ),
];

/// Options whose values are times, a plain number in seconds.
const TIMES: &[&str] = &[
    "runtime",
    "ramp_time",
    "startdelay",
    "steadystate_duration",
    "steadystate_ramp_time",
];

/// The option whose name is most like `name`, if any is close: at most one
/// third of the letters (or one) may be wrong, missing or swapped.
pub(super) fn nearest(name: &str) -> Option<&'static str> {
    let limit = (name.chars().count() / 3).max(1);
    names()
        .map(|known| (strsim::damerau_levenshtein(name, known), known))
        .filter(|&(distance, _)| distance <= limit)
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, known)| known)
}

/// Every name in the tables, the modelled ones first.
fn names() -> impl Iterator<Item = &'static str> {
    let grouped = WITHOUT_EFFECT.iter().chain(NOT_MODELLED);
    modelled::OPTIONS
        .iter()
        .flat_map(|option| option.names.iter().copied())
        .chain(grouped.flat_map(|(_, names)| names.split([' ', '|'])))
}

/// Whether `name` is one of `names`, which are separated by spaces; spellings
/// of one option by `|`.
fn lists(names: &str, name: &str) -> bool {
    names.split([' ', '|']).any(|listed| listed == name)
}

const PROGRAM_OPTIONS: &str = "alloc-size append-terse aux-path bandwidth-log client cmdhelp \
     cpuclock-test crctest daemonize debug enghelp eta eta-interval eta-newline help idle-prof \
     inflate-log latency-log max-jobs memcpytest merge-blktrace-only minimal output output-format \
     parse-only readonly remote-config section server showcmd status-interval terse-version \
     trigger trigger-file trigger-remote trigger-timeout version warnings-fatal";

/// The reason and the names, separated by spaces.
type Group = (&'static str, &'static str);

const WITHOUT_EFFECT: &[Group] = &[
    (
        "the job runs on the modelled device; its clones share one region unless \
         `offset_increment` sets them apart",
        "directory",
    ),
    (
        "the job runs on the modelled device, not on a file",
        "filename_format filetype unique_filename openfiles file_service_type \
         create_serialize create_fsync create_on_open allow_file_create allow_mounted_write \
         unlink unlink_each_loop overwrite fallocate fadvise_hint write_hint fsync_on_close",
    ),
    (
        "there is no page cache in the model: every request goes to the device",
        "invalidate pre_read",
    ),
    ("processes and threads are the same in the model", "thread"),
    (
        "every job is reported by itself, its clones together",
        "group_reporting new_group unified_rw_reporting stats per_job_logs",
    ),
    (
        "every statistic is kept; nothing is written to fio's logs",
        "write_bw_log write_lat_log write_hist_log write_iops_log write_iolog log_entries \
         log_avg_msec log_hist_msec log_hist_coarseness log_window_value log_max_value \
         log_offset log_prio log_issue_time log_compression log_compression_cpus \
         log_store_compressed log_alternate_epoch|log_unix_epoch log_alternate_epoch_clock_id \
         block_error_percentiles bwavgtime iopsavgtime clat_percentiles lat_percentiles \
         slat_percentiles percentile_list significant_figures disk_util disable_lat \
         disable_clat disable_slat disable_bw|disable_bw_measurement unit_base description \
         error_dump",
    ),
    (
        "the model's clock is virtual and costs nothing to read",
        "clocksource gtod_cpu job_start_clock_id",
    ),
    (
        "a modelled run always repeats itself; `randseed` asks for another sequence",
        "randrepeat|allrandrepeat use_os_rand",
    ),
    (
        "the model needs no memory for the random map",
        "softrandommap",
    ),
    (
        "modelled disks do not look at the data",
        "zero_buffers refill_buffers scramble_buffers buffer_compress_percentage \
         buffer_compress_chunk buffer_pattern dedupe_percentage dedupe_mode \
         dedupe_working_set_percentage dedupe_global",
    ),
    (
        "the memory and processors of the host are not modelled",
        "iomem|mem iomem_align|mem_align hugepage_size|hugepage-size lockmem comm nice cpus_allowed \
         cpus_allowed_policy cpumask numa_cpu_nodes numa_mem_policy uid gid thinktime_spin \
         gpu_dev_id",
    ),
    (
        "the host's cost of a request is a setting of the experiment, not of the job",
        "ioscheduler userspace_reap libaio_vectored fixedbufs registerfiles sqthread_poll \
         sqthread_poll_cpu nonvectored force_async hipri hipri_percentage uncached nowait",
    ),
    (
        "nothing is verified, since `verify` is not modelled",
        "do_verify verify_offset verify_interval verify_pattern verify_pattern_interval \
         verify_policy verify_fatal verify_dump verify_async verify_async_cpus verify_backlog \
         verify_backlog_batch verify_state_save verify_write_sequence verify_header_seed \
         verifysort verifysort_nr experimental_verify",
    ),
    (
        "fio itself ignores it",
        "rwmixcycle rate_cycle ratecycle flow_watermark",
    ),
    (
        "no command is run on the host for a modelled job",
        "exec_prerun exec_postrun cgroup_nodelete",
    ),
];

const NOT_MODELLED: &[Group] = &[
    (
        "requests of different sizes; use one block size",
        "bssplit bs_unaligned|blocksize_unaligned bs_is_seq_rand",
    ),
    (
        "offsets at other places than multiples of the block size from the region's start",
        "ba|blockalign|offset_align",
    ),
    (
        "offsets that are not drawn evenly",
        "random_distribution random_sequence_stride percentage_random percentage_sequential \
         rw_sequencer sprandom spr_num_regions spr_op spr_cs num_range",
    ),
    (
        "submission and completion in batches",
        "iodepth_batch|iodepth_batch_submit iodepth_batch_complete_min|iodepth_batch_complete \
         iodepth_batch_complete_max iodepth_low serialize_overlap io_submit_mode",
    ),
    (
        "a limited rate; a modelled job runs as fast as it can",
        "rate rate_min|ratemin rate_iops rate_iops_min rate_process rate_ignore_thinktime \
         flow flow_id flow_sleep thinkcycles thinktime_blocks_type thinktime_iotime",
    ),
    (
        "a job that ends or changes its depth by its latency or rate",
        "latency_target latency_window latency_percentile latency_run max_latency steadystate|ss \
         steadystate_duration|ss_dur steadystate_ramp_time|ss_ramp \
         steadystate_check_interval|ss_interval",
    ),
    (
        "jobs that start or end at other times than their group",
        "startdelay wait_for exit_what exitall_on_error ramp_size",
    ),
    (
        "several files, or a file that changes its size",
        "nrfiles|nr_files opendir lockfile file_append fill_device fill_fs create_only",
    ),
    (
        "reading back what was written",
        "verify verify_only verify_state_load",
    ),
    (
        "trims",
        "trim_percentage trim_verify_zero trim_backlog trim_backlog_batch",
    ),
    (
        "barriers and flushes of ranges; use `fsync`",
        "write_barrier|barrier sync_file_range end_syncfs atomic",
    ),
    (
        "what a job does after an I/O error",
        "continue_on_error ignore_error",
    ),
    (
        "priorities of requests",
        "prio prioclass priohint cmdprio cmdprio_percentage cmdprio_class cmdprio_hint \
         cmdprio_bssplit cgroup cgroup_weight",
    ),
    (
        "replaying a trace",
        "read_iolog read_iolog_chunked merge_blktrace_file merge_blktrace_scalars \
         merge_blktrace_iters replay_no_stall replay_redirect replay_scale replay_align \
         replay_time_scale replay_skip",
    ),
    (
        "zoned access",
        "zonemode zonesize zonecapacity zonerange zoneskip read_beyond_wp max_open_zones \
         job_max_open_zones ignore_zone_limits zone_reset_threshold zone_reset_frequency \
         recover_zbd_write_error write_zone_remainder write_zone_remainders",
    ),
    ("ready-made profiles", "profile"),
    (
        "an I/O engine other than those for disks",
        "cmd_type cdb_len fdp dataplacement data_placement plid_select fdp_pli_select plids \
         fdp_pli dp_scheme md_per_io_size pi_act pi_chk apptag apptag_mask deac volume brick cpuload \
         cpuchunks cpumode exit_on_io_done namenode port hostname interface ttl nodelay \
         protocol proto listen pingpong window_size mss donorname inplace clustername rbdname \
         clientname conf busy_poll touch_objects rbd_encryption_format \
         rbd_encryption_passphrase pool cont chunk_size object_class skip_bad hdfsdirectory \
         verb bindname stat_type readfua writefua write_mode verify_bytchk read_mode \
         verify_mode sg_write_mode stream_id http_host http_user http_pass https http_mode \
         http_s3_region http_s3_key http_s3_keyid http_s3_security_token \
         http_s3_sse_customer_key http_s3_sse_customer_algorithm http_s3_storage_class \
         http_swift_auth_token http_verbose http_object_mode uri gpu_dev_ids cuda_io rocm_io \
         nfs_url program arguments grace_time std_redirect xnvme_async xnvme_sync xnvme_admin \
         xnvme_dev_nsid xnvme_dev_subnqn xnvme_mem xnvme_iovec libblkio_driver libblkio_path \
         libblkio_pre_connect_props libblkio_num_entries libblkio_queue_size \
         libblkio_pre_start_props libblkio_vectored libblkio_write_zeroes_on_trim \
         libblkio_wait_mode libblkio_force_enable_completion_eventfd no_completion_thread",
    ),
];

/// Values of refused options that are what fio does anyway.
const HARMLESS: &[(&str, &[&str])] = &[
    ("random_distribution", &["random"]),
    ("percentage_random", &["100"]),
    ("percentage_sequential", &["0"]),
    ("rw_sequencer", &["sequential"]),
    ("bs_is_seq_rand", &["0"]),
    ("sprandom", &["0"]),
    ("iodepth_batch", &["1"]),
    ("iodepth_batch_submit", &["1"]),
    ("iodepth_batch_complete", &["1"]),
    ("iodepth_batch_complete_min", &["1"]),
    ("iodepth_batch_complete_max", &["1"]),
    ("serialize_overlap", &["0"]),
    ("io_submit_mode", &["inline"]),
    ("rate", &["0"]),
    ("rate_min", &["0"]),
    ("ratemin", &["0"]),
    ("rate_iops", &["0"]),
    ("rate_iops_min", &["0"]),
    ("latency_target", &["0"]),
    ("max_latency", &["0"]),
    ("startdelay", &["0"]),
    ("exit_what", &["group"]),
    ("nrfiles", &["1"]),
    ("nr_files", &["1"]),
    ("lockfile", &["none"]),
    ("file_append", &["0"]),
    ("fill_device", &["0"]),
    ("fill_fs", &["0"]),
    ("create_only", &["0"]),
    ("verify", &["none", "0"]),
    ("verify_state_load", &["0"]),
    ("trim_percentage", &["0"]),
    ("write_barrier", &["0"]),
    ("barrier", &["0"]),
    ("end_syncfs", &["0"]),
    ("atomic", &["0"]),
    ("continue_on_error", &["none", "0"]),
    ("cmdprio_percentage", &["0"]),
    ("zonemode", &["none"]),
    ("fdp", &["0"]),
];

#[cfg(test)]
mod tests {
    use super::{HARMLESS, PROGRAM_OPTIONS, Rule, names, nearest, rule};
    use std::collections::BTreeSet;

    #[test]
    fn each_name_stands_once() {
        let all: Vec<&str> = names().chain(PROGRAM_OPTIONS.split(' ')).collect();
        let different: BTreeSet<&str> = all.iter().copied().collect();
        assert_eq!(all.len(), different.len());
    }

    #[test]
    fn harmless_values_belong_to_refused_options() {
        for (name, _) in HARMLESS {
            assert!(
                matches!(rule(name), Some(Rule::NotModelled { harmless, .. }) if !harmless.is_empty()),
                "{name}"
            );
        }
    }

    #[test]
    fn a_slip_of_the_pen_is_recognised() {
        let cases = [
            ("rwmixraed", Some("rwmixread")),
            ("block_size", Some("blocksize")),
            ("iodpeth", Some("iodepth")),
            ("zzzzzzzz", None),
        ];
        for (name, expected) in cases {
            assert_eq!(nearest(name), expected, "{name}");
        }
    }
}
