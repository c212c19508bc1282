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
    experiment  INTEGER,                         -- of the run's plan; NULL: of none
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
    repetition  INTEGER,
    experiment  INTEGER                          -- of the run's plan; NULL: of none
) STRICT;
CREATE UNIQUE INDEX scope_of_run ON scope
    (run_id, host, subject, filesystem, ifnull(sequence, -1), ifnull(repetition, -1),
     ifnull(experiment, -1));

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
