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
    command_line     TEXT NOT NULL,
    plan_hash        TEXT NOT NULL DEFAULT ''    -- SHA-256 of the plan, if there is one
) STRICT;

-- What a run was planned to be, as data: who goes on with it reads it here.
CREATE TABLE plan (
    run_id   INTEGER PRIMARY KEY REFERENCES run ON DELETE CASCADE,
    program  TEXT NOT NULL,                      -- build ID, or SHA-256, of the program that planned it
    json     TEXT NOT NULL,
    shard    INTEGER,                            -- which part of the run this is, from 0;
    shards   INTEGER                             -- of so many; NULL: the run is whole
) STRICT;

-- Settings in force, as read back.
CREATE TABLE setting (
    setting_id  INTEGER PRIMARY KEY,
    run_id      INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
    experiment  INTEGER,                         -- of the run's plan; NULL: of none
    scope       TEXT NOT NULL,
    name        TEXT NOT NULL,
    value       TEXT NOT NULL,
    source      TEXT NOT NULL
) STRICT;
CREATE INDEX setting_of_run ON setting (run_id);

-- One row per job, operation, part, subject, file system, host, fit and
-- repetition.
CREATE TABLE measurement (
    measurement_id       INTEGER PRIMARY KEY,
    run_id               INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
    experiment           INTEGER,                -- of the run's plan; NULL: of none
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
    runtime_band_ns      INTEGER NOT NULL DEFAULT 0,  -- either way
    kept_percent         REAL,                   -- of the rate without a sync
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
    tag_overflows_count  INTEGER,                -- NULL: nobody counted them
    leaped_percent       REAL NOT NULL,
    role                 TEXT NOT NULL CHECK (role IN ('measured', 'predicted', 'fitted')),
    disk_band_low        REAL,                   -- real rate over the modelled one, at least
    disk_band_high       REAL,                   -- and at most
    disk_band_ratio      REAL,                   -- error of a ratio on the same disks, a factor
    UNIQUE (run_id, sequence, host, subject, filesystem, fit, repetition, part, op)
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
    sync_bytes      INTEGER,                -- NULL: some, nobody knows how much
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
    experiment        INTEGER,                   -- of the run's plan; NULL: of none
    class             TEXT NOT NULL,
    title             TEXT NOT NULL,
    statement         TEXT NOT NULL,
    declared_percent  REAL,                      -- NULL: no accuracy is declared
    subjects          TEXT NOT NULL,             -- JSON array of names; [] is every one
    jobs              TEXT NOT NULL              -- JSON array of names; [] is every one
) STRICT;
CREATE INDEX note_of_run ON note (run_id);

-- The experiments of a run's plan that have come to their end, by their position from
-- 0: all that they gave is here. What belongs to another one may be a part of it.
CREATE TABLE ended (
    run_id      INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
    experiment  INTEGER NOT NULL,
    PRIMARY KEY (run_id, experiment)
) STRICT, WITHOUT ROWID;
