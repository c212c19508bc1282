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
    arguments        TEXT NOT NULL DEFAULT '[]', -- JSON array; [] cannot be gone on with
    plan_hash        TEXT NOT NULL DEFAULT ''
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

-- One row per job, operation, part, subject, file system, host, fit and
-- repetition.
CREATE TABLE measurement (
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
-- Cells that are finished: their rows are complete and are not measured again
-- when an interrupted run goes on.
CREATE TABLE cell (
    run_id      INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
    host        TEXT NOT NULL,
    subject     TEXT NOT NULL,
    filesystem  TEXT NOT NULL,
    fit         TEXT NOT NULL,
    sequence    INTEGER NOT NULL,
    repetition  INTEGER NOT NULL,
    PRIMARY KEY (run_id, host, subject, filesystem, fit, sequence, repetition)
) STRICT, WITHOUT ROWID;

-- Which cells a record belongs to: '' and NULL mean every one.
CREATE TABLE scope (
    scope_id    INTEGER PRIMARY KEY,
    run_id      INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
    host        TEXT NOT NULL,
    subject     TEXT NOT NULL,
    filesystem  TEXT NOT NULL,
    sequence    INTEGER,
    repetition  INTEGER
) STRICT;
CREATE UNIQUE INDEX scope_of_run ON scope
    (run_id, host, subject, filesystem, ifnull(sequence, -1), ifnull(repetition, -1));

-- Facts about machines, arrays and jobs, as read by a program.
CREATE TABLE observation (
    observation_id  INTEGER PRIMARY KEY,
    scope_id        INTEGER NOT NULL REFERENCES scope ON DELETE CASCADE,
    name            TEXT NOT NULL,
    value           TEXT NOT NULL,
    unit            TEXT NOT NULL,
    source          TEXT NOT NULL
) STRICT;
CREATE INDEX observation_of_scope ON observation (scope_id);

-- Commands that ran, with all they said.
CREATE TABLE command (
    command_id  INTEGER PRIMARY KEY,
    scope_id    INTEGER NOT NULL REFERENCES scope ON DELETE CASCADE,
    at_ns       INTEGER NOT NULL,                -- since the experiment began
    command     TEXT NOT NULL,
    exit_code   INTEGER,                         -- NULL: ended by a signal
    took_ns     INTEGER NOT NULL,
    stdout      TEXT NOT NULL,
    stderr      TEXT NOT NULL
) STRICT;
CREATE INDEX command_of_scope ON command (scope_id);

-- What happened when.
CREATE TABLE event (
    event_id  INTEGER PRIMARY KEY,
    scope_id  INTEGER NOT NULL REFERENCES scope ON DELETE CASCADE,
    at_ns     INTEGER NOT NULL,                  -- since the experiment began
    kind      TEXT NOT NULL,
    member    INTEGER,
    text      TEXT NOT NULL
) STRICT;
CREATE INDEX event_of_scope ON event (scope_id);

-- Quantities sampled again and again, and their samples.
CREATE TABLE series (
    series_id  INTEGER PRIMARY KEY,
    scope_id   INTEGER NOT NULL REFERENCES scope ON DELETE CASCADE,
    name       TEXT NOT NULL,
    unit       TEXT NOT NULL,
    UNIQUE (scope_id, name)
) STRICT;
CREATE TABLE sample (
    series_id  INTEGER NOT NULL REFERENCES series ON DELETE CASCADE,
    at_ns      INTEGER NOT NULL,                 -- since the experiment began
    value      REAL NOT NULL,
    PRIMARY KEY (series_id, at_ns)
) STRICT, WITHOUT ROWID;

-- What the audit found when it last looked.
CREATE TABLE finding (
    finding_id  INTEGER PRIMARY KEY,
    scope_id    INTEGER NOT NULL REFERENCES scope ON DELETE CASCADE,
    rule        TEXT NOT NULL,
    title       TEXT NOT NULL,
    severity    TEXT NOT NULL CHECK (severity IN ('note', 'warning', 'fatal')),
    op          TEXT,                            -- NULL: all
    part        TEXT NOT NULL,                   -- '': all
    evidence    TEXT NOT NULL,
    effect      TEXT NOT NULL,
    remedy      TEXT NOT NULL
) STRICT;
CREATE INDEX finding_of_scope ON finding (scope_id);
