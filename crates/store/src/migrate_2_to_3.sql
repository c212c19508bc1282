-- Version 2 to 3: what belongs to an experiment of the run's plan says to which. Of old
-- rows nobody knows it. A run's plan takes the place of its command line's words.
ALTER TABLE run DROP COLUMN arguments;
CREATE TABLE plan (
    run_id   INTEGER PRIMARY KEY REFERENCES run ON DELETE CASCADE,
    program  TEXT NOT NULL,
    json     TEXT NOT NULL
) STRICT;
ALTER TABLE setting ADD COLUMN experiment INTEGER;
ALTER TABLE measurement ADD COLUMN experiment INTEGER;
ALTER TABLE note ADD COLUMN experiment INTEGER;
CREATE TABLE ended (
    run_id      INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
    experiment  INTEGER NOT NULL,
    PRIMARY KEY (run_id, experiment)
) STRICT, WITHOUT ROWID;
