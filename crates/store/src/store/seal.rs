//! The seal of a whole shard: a digest of all that merging takes of it.
//!
//! `SQLite` finds out whether the pages of a file hang together, and not whether a number in
//! them is the one that was written. A shard travels from machine to machine, so its file
//! says what a digest of its rows is. It is kept as a fact of the file's own, which belongs
//! to no experiment: nobody who asks for facts is told it, and no export has it.

use super::merging::{TABLES, rows_of};
use super::{OF_THE_WHOLE, RunId, Store};
use crate::schema::failure;
use crate::{Observation, Records, Scope, StoreError};
use raidlab_units::{FNV_BASIS, fnv1a};
use rusqlite::types::ValueRef;

/// The fact that is the digest: FNV-1a of 64 bits, in hexadecimal digits.
pub(super) const SEAL: &str = "shard.fnv1a";

impl Store {
    /// Writes down what the digest of a shard is that has come to its end.
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

    /// Whether a whole shard is still what it was when it was sealed: false, too, of one
    /// that was never sealed.
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

    /// The digest of the run itself, its plan, its notes and all rows of experiments that
    /// have come to their end.
    fn digest(&self, run: RunId) -> Result<String, StoreError> {
        let whole = ["run", "plan"].map(|table| format!("SELECT * FROM {table} WHERE run_id = ?1"));
        let notes = format!("SELECT * FROM note WHERE run_id = ?1 AND {OF_THE_WHOLE}");
        let of_tables = TABLES.iter().map(|(table, joins)| rows_of(table, joins));
        let all = whole.into_iter().chain([notes]).chain(of_tables);
        let mut digest: u64 = 0;
        for (place, select) in all.enumerate() {
            // A row's number is in it, so it does not matter in which order they come.
            let of_rows = self.digest_of_rows(place, &select, run)?;
            digest = digest.wrapping_add(of_rows);
        }
        Ok(format!("{digest:016x}"))
    }

    /// The sum of the digests of the rows that a question gives, which is one of several.
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

/// Takes a value to the digest of those before it: its kind, its length
/// in bytes and the bytes themselves.
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
