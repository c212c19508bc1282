-- Version 3 to 4: how far figures of disks that nobody fitted may be off. Of old rows
-- nothing was known.
ALTER TABLE measurement ADD COLUMN disk_band_low REAL;
ALTER TABLE measurement ADD COLUMN disk_band_high REAL;
ALTER TABLE measurement ADD COLUMN disk_band_ratio REAL;
