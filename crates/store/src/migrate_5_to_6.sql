-- Version 5 to 6: a run may be a shard, a part of a run that many machines do.
ALTER TABLE plan ADD COLUMN shard INTEGER;
ALTER TABLE plan ADD COLUMN shards INTEGER;
