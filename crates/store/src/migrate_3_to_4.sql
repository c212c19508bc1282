-- Version 3 to 4: how far figures of disks that nobody fitted may be off, and what arrays
-- do in the background. Of old rows nothing was known of either.
ALTER TABLE measurement ADD COLUMN disk_band_low REAL;
ALTER TABLE measurement ADD COLUMN disk_band_high REAL;
ALTER TABLE measurement ADD COLUMN disk_band_ratio REAL;
ALTER TABLE measurement ADD COLUMN runtime_band_ns INTEGER NOT NULL DEFAULT 0;
ALTER TABLE measurement ADD COLUMN kept_percent REAL;
