-- One row per run: one suite on one bench, started once.
CREATE TABLE run (
    run_id           INTEGER PRIMARY KEY,
    name             TEXT NOT NULL UNIQUE,
    started_utc      TEXT NOT NULL,              -- RFC 3339
    finished_utc     TEXT,                       -- NULL: running, or interrupted
    bench            TEXT NOT NULL,
    suite            TEXT NOT NULL,
    suite_title      TEXT NOT NULL,
    seed             TEXT NOT NULL,              -- decimal; may exceed a signed integer
    raidlab_version  TEXT NOT NULL,
    command_line     TEXT NOT NULL
) STRICT;

-- Settings in force, as read back.
CREATE TABLE setting (
    setting_id  INTEGER PRIMARY KEY,
    run_id      INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
    scope       TEXT NOT NULL,
    name        TEXT NOT NULL,
    value       TEXT NOT NULL,
    source      TEXT NOT NULL
) STRICT;
CREATE INDEX setting_of_run ON setting (run_id);

-- One row per job, operation, subject and fit.
CREATE TABLE measurement (
    measurement_id       INTEGER PRIMARY KEY,
    run_id               INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
    bench                TEXT NOT NULL,
    suite                TEXT NOT NULL,
    subject              TEXT NOT NULL,
    fit                  TEXT NOT NULL,          -- '' on real disks
    sequence             INTEGER NOT NULL,
    job                  TEXT NOT NULL,
    job_title            TEXT NOT NULL,
    class                TEXT NOT NULL,
    op                   TEXT NOT NULL CHECK (op IN ('read', 'write')),
    block_size_bytes     INTEGER NOT NULL,
    queue_depth          INTEGER NOT NULL,
    streams              INTEGER NOT NULL,
    total_ios            INTEGER NOT NULL,
    total_bytes          INTEGER NOT NULL,
    runtime_ns           INTEGER NOT NULL,
    iops                 REAL NOT NULL,
    bytes_per_second     REAL NOT NULL,
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
    UNIQUE (run_id, sequence, subject, fit, op)
) STRICT;

-- What each member did during a job, in slot order.
CREATE TABLE member_use (
    measurement_id  INTEGER NOT NULL REFERENCES measurement ON DELETE CASCADE,
    slot            INTEGER NOT NULL,
    member          TEXT NOT NULL,
    model           TEXT NOT NULL,
    read_ios        INTEGER NOT NULL,
    read_bytes      INTEGER NOT NULL,
    read_ticks_ns   INTEGER NOT NULL,
    write_ios       INTEGER NOT NULL,
    write_bytes     INTEGER NOT NULL,
    write_ticks_ns  INTEGER NOT NULL,
    busy_ns         INTEGER NOT NULL,
    sync_bytes      INTEGER NOT NULL,
    PRIMARY KEY (measurement_id, slot)
) STRICT, WITHOUT ROWID;

-- The same cell elsewhere; position 0 is the one to compare with.
CREATE TABLE published_figure (
    measurement_id    INTEGER NOT NULL REFERENCES measurement ON DELETE CASCADE,
    position          INTEGER NOT NULL,
    source            TEXT NOT NULL,
    iops              REAL NOT NULL,
    bytes_per_second  REAL,
    reliability       TEXT NOT NULL,
    sync_percent      REAL,
    note              TEXT NOT NULL,
    PRIMARY KEY (measurement_id, position)
) STRICT, WITHOUT ROWID;

-- Statements about a run: accuracy per class, ablations, remarks.
CREATE TABLE note (
    note_id           INTEGER PRIMARY KEY,
    run_id            INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
    class             TEXT NOT NULL,
    title             TEXT NOT NULL,
    statement         TEXT NOT NULL,
    declared_percent  REAL,                      -- NULL: no accuracy is declared
    subjects          TEXT NOT NULL,             -- JSON array of names; [] is every one
    jobs              TEXT NOT NULL              -- JSON array of names; [] is every one
) STRICT;
CREATE INDEX note_of_run ON note (run_id);
