//! The seal of a whole shard: a digest of all rows that merging copies.
//!
//! `SQLite` checks that the pages of a file are consistent, but not that a number in them is the
//! one that was written. A shard travels from machine to machine, so its file has a digest of its
//! rows. It is stored as a fact that belongs to no experiment: queries for facts do not return it,
//! and no export has it.

use super::merging::{TABLES, rows_of};
use super::{OF_THE_WHOLE, RunId, Store};
use crate::schema::failure;
use crate::{Observation, Records, Scope, StoreError};
use raidlab_units::{FNV_BASIS, fnv1a};
use rusqlite::types::ValueRef;

/// The name of the fact with the digest: FNV-1a of 64 bits, in hexadecimal digits.
pub(super) const SEAL: &str = "shard.fnv1a";

impl Store {
    /// Stores the digest of a finished shard.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub fn seal(&mut self, run: RunId) -> Result<(), StoreError> {
        let seal = Observation::new(&Scope::default(), SEAL, self.digest(run)?, "", "raidlab");
        let records = Records {
            observations: vec![seal],
            ..Records::default()
        };
        self.add_records(run, &records)
    }

    /// Whether a whole shard is unchanged since it was sealed; false also for one that
    /// was never sealed.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn is_sealed(&self, run: RunId) -> Result<bool, StoreError> {
        let seals = self.collect(
            "read the seal",
            "SELECT value FROM observation JOIN scope USING (scope_id)
             WHERE run_id = ? AND experiment IS NULL AND name = ? ORDER BY observation_id DESC",
            (run.0, SEAL),
            |row| row.get::<_, String>(0),
        )?;
        match seals.first() {
            Some(seal) => Ok(*seal == self.digest(run)?),
            None => Ok(false),
        }
    }

    /// The digest of the run itself, its plan, its notes and all rows of finished experiments.
    fn digest(&self, run: RunId) -> Result<String, StoreError> {
        let whole = ["run", "plan"].map(|table| format!("SELECT * FROM {table} WHERE run_id = ?1"));
        let notes = format!("SELECT * FROM note WHERE run_id = ?1 AND {OF_THE_WHOLE}");
        let of_tables = TABLES.iter().map(|(table, joins)| rows_of(table, joins));
        let all = whole.into_iter().chain([notes]).chain(of_tables);
        let mut digest: u64 = 0;
        for (place, select) in all.enumerate() {
            // Each row's number is part of its digest, so the order of the rows does not matter.
            let of_rows = self.digest_of_rows(place, &select, run)?;
            digest = digest.wrapping_add(of_rows);
        }
        Ok(format!("{digest:016x}"))
    }

    /// The sum of the digests of the rows that a query returns; `place` tells the queries apart.
    fn digest_of_rows(&self, place: usize, select: &str, run: RunId) -> Result<u64, StoreError> {
        let fail = |error| failure("read a shard", &self.path, error);
        let begun = fnv1a(FNV_BASIS, place.to_le_bytes());
        let mut statement = self.connection.prepare(select).map_err(fail)?;
        let width = statement.column_count();
        let mut rows = statement.query([run.0]).map_err(fail)?;
        let mut sum: u64 = 0;
        while let Some(row) = rows.next().map_err(fail)? {
            let mut digest = begun;
            for index in 0..width {
                digest = digest_of_value(digest, row.get_ref(index).map_err(fail)?);
            }
            sum = sum.wrapping_add(digest);
        }
        Ok(sum)
    }
}

/// Continues a digest with a value: its kind, its length in bytes and the bytes themselves.
pub(super) fn digest_of_value(digest: u64, value: ValueRef<'_>) -> u64 {
    let number;
    let (kind, bytes) = match value {
        ValueRef::Null => (0, &[][..]),
        ValueRef::Integer(value) => {
            number = value.to_le_bytes();
            (1, &number[..])
        }
        ValueRef::Real(value) => {
            number = value.to_le_bytes();
            (2, &number[..])
        }
        ValueRef::Text(value) => (3, value),
        ValueRef::Blob(value) => (4, value),
    };
    let digest = fnv1a(fnv1a(digest, [kind]), bytes.len().to_le_bytes());
    fnv1a(digest, bytes.iter().copied())
}
