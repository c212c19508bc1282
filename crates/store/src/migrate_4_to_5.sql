-- Version 4 to 5: what nobody counted is no longer 0. Only models count the requests that
-- found a queue full, and how much of what a member did was a rebuild's.
ALTER TABLE measurement ADD COLUMN counted INTEGER;
UPDATE measurement SET counted = tag_overflows_count
    WHERE bench = 'model' OR tag_overflows_count > 0;
ALTER TABLE measurement DROP COLUMN tag_overflows_count;
ALTER TABLE measurement RENAME COLUMN counted TO tag_overflows_count;
ALTER TABLE member_use ADD COLUMN counted INTEGER;
UPDATE member_use SET counted = sync_bytes
    WHERE sync_bytes > 0 OR measurement_id IN (
        SELECT measurement_id FROM measurement WHERE bench = 'model'
        OR (bench <> 'import' AND sync_percent_start IS NULL AND sync_percent_end IS NULL));
ALTER TABLE member_use DROP COLUMN sync_bytes;
ALTER TABLE member_use RENAME COLUMN counted TO sync_bytes;
