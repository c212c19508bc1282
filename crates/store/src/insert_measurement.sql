INSERT INTO measurement (
    run_id, bench, suite, host, subject, filesystem, fit, sequence, job,
    job_title, repetition, tool, part, class, op, block_size_bytes,
    queue_depth, streams, total_ios, total_bytes, started_ns, runtime_ns,
    iops, bytes_per_second, cpu_percent, latency_mean_ns, latency_p50_ns,
    latency_p90_ns, latency_p99_ns, latency_p999_ns, latency_max_ns,
    latency_histogram, array_state_start, array_state_end, sync_percent_start,
    sync_percent_end, tag_overflows_count, leaped_percent, role, experiment,
    disk_band_low, disk_band_high, disk_band_ratio, runtime_band_ns, kept_percent
) VALUES (
    ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16,
    ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28, ?29, ?30, ?31,
    ?32, ?33, ?34, ?35, ?36, ?37, ?38, ?39, ?40, ?41, ?42, ?43, ?44, ?45
)
