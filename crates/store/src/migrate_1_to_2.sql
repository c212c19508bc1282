-- Version 1 to 2: machines, file systems, repetitions and parts get columns;
-- records get tables. Old rows are of modelled machines, measured once.
ALTER TABLE run ADD COLUMN arguments TEXT NOT NULL DEFAULT '[]';
ALTER TABLE run ADD COLUMN plan_hash TEXT NOT NULL DEFAULT '';
CREATE TABLE measurement_2 (
    measurement_id       INTEGER PRIMARY KEY,
    run_id               INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
    bench                TEXT NOT NULL,
    suite                TEXT NOT NULL,
    host                 TEXT NOT NULL,          -- '' for modelled ones
    subject              TEXT NOT NULL,
    filesystem           TEXT NOT NULL,          -- '' on the raw array
    fit                  TEXT NOT NULL,          -- '' on real disks
    sequence             INTEGER NOT NULL,
    job                  TEXT NOT NULL,
    job_title            TEXT NOT NULL,
    repetition           INTEGER NOT NULL,       -- from 0
    tool                 TEXT NOT NULL,          -- with its version; '' for the model
    part                 TEXT NOT NULL,          -- of the tool's output
    class                TEXT NOT NULL,
    op                   TEXT NOT NULL,
    block_size_bytes     INTEGER NOT NULL,
    queue_depth          INTEGER NOT NULL,
    streams              INTEGER NOT NULL,
    total_ios            INTEGER NOT NULL,
    total_bytes          INTEGER NOT NULL,
    started_ns           INTEGER NOT NULL,       -- since the experiment began
    runtime_ns           INTEGER NOT NULL,
    iops                 REAL NOT NULL,
    bytes_per_second     REAL NOT NULL,
    cpu_percent          REAL,                   -- of one processor
    latency_mean_ns      REAL NOT NULL,
    latency_p50_ns       INTEGER NOT NULL,
    latency_p90_ns       INTEGER NOT NULL,
    latency_p99_ns       INTEGER NOT NULL,
    latency_p999_ns      INTEGER NOT NULL,
    latency_max_ns       INTEGER NOT NULL,
    latency_histogram    BLOB NOT NULL,          -- HdrHistogram V2, deflated; x'' if unknown
    array_state_start    TEXT NOT NULL,
    array_state_end      TEXT NOT NULL,
    sync_percent_start   REAL,
    sync_percent_end     REAL,
    tag_overflows_count  INTEGER NOT NULL,
    leaped_percent       REAL NOT NULL,
    role                 TEXT NOT NULL CHECK (role IN ('measured', 'predicted', 'fitted')),
    UNIQUE (run_id, sequence, host, subject, filesystem, fit, repetition, part, op)
) STRICT;
INSERT INTO measurement_2 (
    measurement_id, run_id, bench, suite, host, subject, filesystem, fit,
    sequence, job, job_title, repetition, tool, part, class, op,
    block_size_bytes, queue_depth, streams, total_ios, total_bytes,
    started_ns, runtime_ns, iops, bytes_per_second, cpu_percent,
    latency_mean_ns, latency_p50_ns, latency_p90_ns, latency_p99_ns,
    latency_p999_ns, latency_max_ns, latency_histogram, array_state_start,
    array_state_end, sync_percent_start, sync_percent_end,
    tag_overflows_count, leaped_percent, role
) SELECT
    measurement_id, run_id, bench, suite, '', subject, '', fit, sequence, job,
    job_title, 0, '', '', class, op, block_size_bytes, queue_depth, streams,
    total_ios, total_bytes, 0, runtime_ns, iops, bytes_per_second, NULL,
    latency_mean_ns, latency_p50_ns, latency_p90_ns, latency_p99_ns,
    latency_p999_ns, latency_max_ns, latency_histogram, array_state_start,
    array_state_end, sync_percent_start, sync_percent_end,
    tag_overflows_count, leaped_percent, role
FROM measurement;
DROP TABLE measurement;
ALTER TABLE measurement_2 RENAME TO measurement;
