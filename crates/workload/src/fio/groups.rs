//! The options that the model does not honour, grouped by the reason that the user
//! is told.

/// A reason, and the names of the options, separated by spaces.
pub(super) type Group = (&'static str, &'static str);

/// Options without effect in the model.
pub(super) const WITHOUT_EFFECT: &[Group] = &[
    (
        "the job runs on the modelled device; its clones share one region unless \
         `offset_increment` sets them apart",
        "directory",
    ),
    (
        "the job runs on the modelled device, not on a file",
        "filename_format filetype unique_filename openfiles file_service_type \
         create_serialize create_fsync create_on_open allow_file_create allow_mounted_write \
         unlink unlink_each_loop overwrite fallocate fadvise_hint write_hint",
    ),
    (
        "there is no page cache in the model: every request goes to the device",
        "invalidate pre_read",
    ),
    (
        "the jobs that run together are one row for each direction",
        "group_reporting unified_rw_reporting per_job_logs",
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
        "the modelled device is not zoned, has no limits of zones, and its writes do not fail",
        "ignore_zone_limits recover_zbd_write_error",
    ),
    ("no block of a modelled device is bad", "skip_bad"),
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
        "what `verify` reads back is not compared",
        "verify_offset verify_interval verify_pattern_interval \
         verify_policy verify_fatal verify_dump verify_async verify_async_cpus \
         verify_state_save verify_write_sequence verify_header_seed \
         verifysort verifysort_nr experimental_verify",
    ),
    ("fio itself ignores it", "flow_watermark"),
    (
        "modelled disks have no priorities: all requests are equal, as on a disk without them",
        "prio prioclass priohint cmdprio cmdprio_percentage cmdprio_class cmdprio_hint \
         cmdprio_bssplit",
    ),
    (
        "the model takes notice of one answer at a time",
        "iodepth_batch_complete_max",
    ),
    (
        "a write that is done whole or not at all is a write like any other here",
        "atomic",
    ),
    ("with direct I/O it reaches no disk", "sync_file_range"),
    (
        "modelled disks keep nothing beside their blocks",
        "md_per_io_size pi_act pi_chk apptag apptag_mask",
    ),
    (
        "a job has the one device that raidlab gives it, as fio's with one `filename`",
        "nrfiles|nr_files",
    ),
    (
        "the device is as large as it is: the job goes to its end",
        "fill_device|fill_fs",
    ),
    (
        "the modelled device takes the place of what the engine reaches",
        "cmd_type fdp dataplacement data_placement plid_select fdp_pli_select plids fdp_pli \
         dp_scheme namenode clustername rbdname clientname conf busy_poll touch_objects pool cont \
         chunk_size object_class volume brick hdfsdirectory uri nfs_url gpu_dev_ids cuda_io \
         rocm_io xnvme_async xnvme_sync xnvme_dev_nsid xnvme_dev_subnqn xnvme_mem xnvme_iovec \
         libblkio_driver libblkio_path libblkio_pre_connect_props libblkio_num_entries \
         libblkio_queue_size libblkio_pre_start_props libblkio_vectored libblkio_wait_mode \
         libblkio_force_enable_completion_eventfd http_host http_user http_pass https http_mode \
         http_s3_region http_s3_key http_s3_keyid http_s3_security_token \
         http_s3_sse_customer_key http_s3_sse_customer_algorithm http_s3_storage_class \
         http_swift_auth_token http_verbose http_object_mode",
    ),
    (
        "no command is run on the host for a modelled job",
        "exec_prerun exec_postrun cgroup_nodelete",
    ),
];

/// Options that the model refuses.
pub(super) const NOT_MODELLED: &[Group] = &[
    ("an option that fio itself takes no longer", "rwmixcycle"),
    ("sizes that follow the order of offsets", "bs_is_seq_rand"),
    (
        "offsets that nothing else here draws so",
        "percentage_sequential",
    ),
    (
        "requests that wait for those they overlap",
        "serialize_overlap",
    ),
    ("work of the processor between requests", "thinkcycles"),
    ("a job that fails by its latency", "max_latency"),
    ("a job that the figures leave out", "stats"),
    (
        "jobs that start or end at other times than their group",
        "exitall_on_error ramp_size",
    ),
    (
        "several files, or a file that changes its size",
        "opendir lockfile file_append create_only",
    ),
    (
        "reading back what was written",
        "verify_only verify_state_load",
    ),
    (
        "discards of what was read back",
        "trim_percentage trim_verify_zero trim_backlog trim_backlog_batch",
    ),
    (
        "barriers and flushes of file systems; use `fsync`",
        "write_barrier|barrier end_syncfs",
    ),
    ("shares of a control group", "cgroup cgroup_weight"),
    (
        "replaying a trace",
        "read_iolog read_iolog_chunked merge_blktrace_file merge_blktrace_scalars \
         merge_blktrace_iters replay_no_stall replay_redirect replay_scale replay_align \
         replay_time_scale replay_skip",
    ),
    (
        "writes shorter than the smallest request, where a zone ends",
        "write_zone_remainder write_zone_remainders",
    ),
    ("ready-made profiles", "profile"),
    (
        "an I/O engine other than those for disks",
        "cdb_len cpuload cpuchunks cpumode exit_on_io_done port hostname interface ttl nodelay \
         protocol proto listen pingpong window_size mss donorname inplace verb bindname stat_type \
         program arguments grace_time std_redirect no_completion_thread rbd_encryption_format \
         rbd_encryption_passphrase",
    ),
    (
        "commands of a device other than reads, writes, flushes and discards",
        "deac readfua write_mode \
         verify_bytchk read_mode verify_mode sg_write_mode stream_id xnvme_admin \
         libblkio_write_zeroes_on_trim",
    ),
];

/// Values of refused options that are fio's default behaviour.
pub(super) const HARMLESS: &[(&str, &[&str])] = &[
    ("percentage_sequential", &["0"]),
    ("stats", &["1"]),
    ("bs_is_seq_rand", &["0"]),
    ("readfua", &["0"]),
    ("serialize_overlap", &["0"]),
    ("max_latency", &["0"]),
    ("lockfile", &["none"]),
    ("file_append", &["0"]),
    ("create_only", &["0"]),
    ("verify_state_load", &["0"]),
    ("trim_percentage", &["0"]),
    ("write_barrier", &["0"]),
    ("barrier", &["0"]),
    ("end_syncfs", &["0"]),
];
