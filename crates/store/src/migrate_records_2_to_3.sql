-- Version 2 to 3, of records.sql.
ALTER TABLE cell ADD COLUMN experiment INTEGER;
ALTER TABLE scope ADD COLUMN experiment INTEGER;
DROP INDEX scope_of_run;
CREATE UNIQUE INDEX scope_of_run ON scope
    (run_id, host, subject, filesystem, ifnull(sequence, -1), ifnull(repetition, -1),
     ifnull(experiment, -1));
