//! A run's tables read back from Parquet into a store.

use super::write::{each_row, select};
use super::{
    Column, DIGEST, KEYS, Kind, Parent, ParquetError, RUN, TABLES, Table, Taken, digest_of_row,
    message, path, version,
};
use crate::origin::Origin;
use crate::read::{read, read_measurement, read_note, read_point, read_run};
use crate::records::Inserter;
use crate::schema::{failure, open_in_memory};
use crate::{
    Cell, CommandRecord, EventRecord, Finding, MemberUse, Observation, PublishedFigure, RunId,
    Scope, Store,
};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use parquet::record::reader::RowIter;
use parquet::schema::parser::parse_message_type;
use raidlab_units::{FNV_BASIS, cannot};
use rusqlite::types::Value;
use rusqlite::{Connection, ErrorCode, Row, Transaction, TransactionBehavior, params_from_iter};
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

impl Store {
    /// Whether a folder is one that [`Store::write_parquet`] wrote.
    #[must_use]
    pub fn is_parquet_folder(folder: &Path) -> bool {
        path(folder, RUN).is_file()
    }

    /// Reads a run from a folder that [`Store::write_parquet`] wrote, all of it or nothing, under
    /// its name or the next free one.
    ///
    /// # Errors
    /// A file is missing, damaged, of another run, or of another version; or the store
    /// cannot be written.
    pub fn read_parquet(&mut self, folder: &Path) -> Result<Taken, ParquetError> {
        let fail = |error| failure("import a run", &self.path, error);
        let transaction = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(fail)?;
        let new = open_in_memory()?;
        let run = Opened::open(folder, &TABLES[0], &new)?;
        let mut files = Vec::new();
        for table in &TABLES[1..] {
            let file = Opened::open(folder, table, &new)?;
            if file.run != run.run {
                let (own, other) = (file.run.clone(), &run.run);
                return Err(file.refuse(format!("it is of run {own}, others here of {other}")));
            }
            files.push(file);
        }
        let mut reading = match Reading::begin(&transaction, &self.path, &run, &files)? {
            Ok(reading) => reading,
            Err(known) => return Ok(Taken::Known(known)),
        };
        for file in &files {
            reading.take(file)?;
            reading.check(file)?;
        }
        let (name, run) = (reading.name, reading.run);
        transaction.commit().map_err(fail)?;
        if self.plan(run)?.is_some_and(|plan| plan.shard.is_some()) {
            self.seal(run)?;
        }
        Ok(Taken::As(name))
    }
}

/// An opened file whose columns are those of its table.
struct Opened {
    path: PathBuf,
    table: &'static Table,
    file: SerializedFileReader<File>,
    /// The leading columns, followed by the table's own.
    columns: Vec<Column>,
    leading: usize,
    /// The name of its run, from the file's metadata.
    run: String,
    /// The digest of its rows, from the file's metadata.
    digest: String,
}

impl Opened {
    fn open(folder: &Path, table: &'static Table, new: &Connection) -> Result<Self, ParquetError> {
        let path = table.path(folder);
        let file = File::open(&path).map_err(cannot("read", &path))?;
        let fail = |source| ParquetError::Format {
            path: path.clone(),
            source,
        };
        let file = SerializedFileReader::new(file).map_err(fail)?;
        let mut columns = table.leading();
        let leading = columns.len();
        columns.extend(table.own(new)?);
        let metadata = file.metadata().file_metadata();
        let said = |key: &str| {
            let all = metadata.key_value_metadata()?;
            all.iter().find(|one| one.key == key)?.value.clone()
        };
        let refused = |why| {
            let path = path.clone();
            Err(ParquetError::Refused { path, why })
        };
        let (Some(found), Some(run), Some(digest)) = (said(KEYS[0]), said(KEYS[1]), said(DIGEST))
        else {
            return refused("it is not a table of a run that raidlab wrote".to_owned());
        };
        if found != version() {
            let (own, name) = (version(), table.file);
            return refused(format!(
                "its {name} are of schema version {found}, this raidlab reads version {own}: use \
                 the raidlab that wrote it"
            ));
        }
        let is_of = |columns: &[Column]| -> Result<bool, ParquetError> {
            let expected = parse_message_type(&message(table.file, columns)).map_err(fail)?;
            Ok(expected == *metadata.schema())
        };
        if !is_of(&columns)? {
            // Until 30 November 2026 the files had 0 for what was not reported, as the store; those of
            // published figures a day longer.
            for column in &mut columns {
                column.required |= table.may_be_unreported(&column.name);
            }
            if !is_of(&columns)? {
                let name = table.file;
                return refused(format!("its columns are not those of {name}"));
            }
        }
        let length = std::fs::metadata(&path).map_or(0, |found| found.len());
        let mut chunks = (file.metadata().row_groups().iter()).flat_map(|group| group.columns());
        // The reader of columns takes these ranges for valid, so they are checked here.
        let inside = chunks.all(|chunk| {
            let start = (chunk.dictionary_page_offset()).unwrap_or(chunk.data_page_offset());
            let end = start.checked_add(chunk.compressed_size());
            let end = end.and_then(|end| u64::try_from(end).ok());
            start >= 0 && chunk.compressed_size() >= 0 && end.is_some_and(|end| end <= length)
        });
        if !inside {
            return refused("its columns lie outside of it".to_owned());
        }
        Ok(Self {
            path,
            table,
            file,
            columns,
            leading,
            run,
            digest,
        })
    }

    /// Passes on each row, one at a time.
    fn each(
        &self,
        mut take: impl FnMut(Vec<Value>) -> Result<(), ParquetError>,
    ) -> Result<(), ParquetError> {
        let fail = |source| ParquetError::Format {
            path: self.path.clone(),
            source,
        };
        let mut digest = FNV_BASIS;
        let mut rows = self.file.get_row_iter(None).map_err(fail)?;
        while let Some(row) = self.next(&mut rows)? {
            let columns = row.map_err(fail)?.into_columns();
            let values: Option<Vec<Value>> =
                columns.into_iter().map(|(_, field)| value(field)).collect();
            let row = values.ok_or_else(|| self.refuse("a number that is none".to_owned()))?;
            digest = digest_of_row(digest, &row);
            take(row)?;
        }
        if format!("{digest:016x}") == self.digest {
            return Ok(());
        }
        Err(self.refuse("it is damaged: its rows are not those that were written".to_owned()))
    }

    /// The next row, if there is one. With some damaged bytes Parquet's library panics.
    fn next<'a>(
        &self,
        rows: &mut RowIter<'a>,
    ) -> Result<Option<<RowIter<'a> as Iterator>::Item>, ParquetError> {
        let next = catch_unwind(AssertUnwindSafe(|| rows.next()));
        next.map_err(|_| self.refuse("it is damaged: it cannot be decoded".to_owned()))
    }

    /// Whether a run of the store has the rows of this file, by the file's digest. A run that had
    /// not come to its end has fewer, though the table of runs says the same of both.
    fn is_stored(
        &self,
        transaction: &Transaction<'_>,
        store: &Path,
        run: RunId,
    ) -> Result<bool, ParquetError> {
        let select = select(self.table, &self.columns);
        let mut digest = FNV_BASIS;
        each_row(transaction, store, run, &select, |mut row| {
            row[0] = Value::Text(self.run.clone());
            digest = digest_of_row(digest, &row);
            Ok(())
        })?;
        Ok(format!("{digest:016x}") == self.digest)
    }

    fn refuse(&self, why: String) -> ParquetError {
        let path = self.path.clone();
        ParquetError::Refused { path, why }
    }

    /// The table's own columns, each with the placeholder of its value in a statement.
    fn own(&self) -> impl Iterator<Item = (&str, &'static str)> {
        self.columns[self.leading..].iter().map(|column| {
            let name = match (self.table.file, column.name.as_str()) {
                (RUN, "run") => "name",
                (_, name) => name,
            };
            let place = match column.kind {
                Kind::Instant => "strftime('%Y-%m-%dT%H:%M:%SZ', ? / 1000000, 'unixepoch')",
                _ if self.table.may_be_unreported(name) => "coalesce(?, 0)",
                _ => "?",
            };
            (name, place)
        })
    }
}

/// The runs of a store that are the run of a file, as far as the table of runs tells, under
/// whatever names: a run whose name is taken gets another one where it is imported.
fn same_runs(
    transaction: &Transaction<'_>,
    store: &Path,
    file: &Opened,
    row: &[Value],
) -> Result<Vec<(RunId, String)>, ParquetError> {
    let fail = |error| failure("import a run", store, error);
    let told = file.own().zip(row).filter(|((name, _), _)| *name != "name");
    let (columns, values): (Vec<String>, Vec<&Value>) = told
        .map(|((name, place), value)| (format!("{name} IS {place}"), value))
        .unzip();
    let sql = format!(
        "SELECT run_id, name FROM run WHERE {} ORDER BY run_id",
        columns.join(" AND ")
    );
    let mut statement = transaction.prepare(&sql).map_err(fail)?;
    let found = statement
        .query_map(params_from_iter(values), |row| {
            Ok((RunId(row.get(0)?), row.get(1)?))
        })
        .map_err(fail)?;
    Ok(found.collect::<rusqlite::Result<_>>().map_err(fail)?)
}

/// A value as the store holds it; `None` for a number that is none, and for types that
/// no column has.
fn value(field: Field) -> Option<Value> {
    Some(match field {
        Field::Null => Value::Null,
        Field::Long(one) | Field::TimestampMicros(one) => Value::Integer(one),
        Field::Double(one) if one.is_finite() => Value::Real(one),
        Field::Str(one) => Value::Text(one),
        Field::Bytes(one) => Value::Blob(one.data().to_vec()),
        _ => return None,
    })
}

/// A run that is being read into a store.
struct Reading<'a> {
    transaction: &'a Transaction<'a>,
    store: &'a Path,
    run: RunId,
    name: String,
    /// The number of measurements read.
    measurements: i64,
    /// The store's number of the first measurement.
    first: i64,
    /// The leading columns of the previous row, and the number that they stand for.
    last: Option<(Vec<Value>, i64)>,
}

impl<'a> Reading<'a> {
    /// Inserts the run itself into the store; returns the name of the same run where it is there
    /// already. `others`: the files of the other tables.
    fn begin(
        transaction: &'a Transaction<'a>,
        store: &'a Path,
        file: &Opened,
        others: &[Opened],
    ) -> Result<Result<Self, String>, ParquetError> {
        let fail = |error| failure("import a run", store, error);
        let mut rows = Vec::new();
        file.each(|row| {
            rows.push(row);
            Ok(())
        })?;
        let place = file.own().position(|(name, _)| name == "name");
        let (Some(mut row), Some(place), true) = (rows.pop(), place, rows.is_empty()) else {
            return Err(file.refuse("it is not of one run".to_owned()));
        };
        let stem = file.run.clone();
        let mut name = stem.clone();
        for (run, known) in same_runs(transaction, store, file, &row)? {
            let mut is_same = true;
            for measured in others
                .iter()
                .filter(|one| one.table.parent == Parent::Numbered)
            {
                is_same &= measured.is_stored(transaction, store, run)?;
            }
            if is_same {
                return Ok(Err(known));
            }
        }
        let exists = |name: &str| {
            let sql = "SELECT EXISTS (SELECT 1 FROM run WHERE name = ?)";
            (transaction.query_row(sql, [name], |row| row.get(0))).map_err(fail)
        };
        let mut number = 1;
        while exists(&name)? {
            number += 1;
            name = format!("{stem}-{number}");
        }
        row[place] = Value::Text(name.clone());
        let mut reading = Self {
            transaction,
            store,
            run: RunId(0),
            name,
            measurements: 0,
            first: 0,
            last: None,
        };
        reading.run = RunId(reading.insert(file, None, row)?);
        reading.check(file)?;
        Ok(Ok(reading))
    }

    /// Reads the rows of a file.
    fn take(&mut self, file: &Opened) -> Result<(), ParquetError> {
        self.last = None;
        file.each(|mut row| {
            let own = row.split_off(file.leading);
            let (column, number) = self.parent(file, row)?;
            let id = self.insert(file, Some((column, number)), own)?;
            if file.table.parent == Parent::Numbered {
                if self.measurements == 0 {
                    self.first = id;
                }
                self.measurements += 1;
            }
            Ok(())
        })
    }

    /// The row that a row with these leading columns belongs to: the column that refers to it,
    /// and its number.
    fn parent(
        &mut self,
        file: &Opened,
        row: Vec<Value>,
    ) -> Result<(&'static str, i64), ParquetError> {
        let column = match file.table.parent {
            Parent::Run => return Ok(("run_id", self.run.0)),
            Parent::Numbered if row[1] == Value::Integer(self.measurements) => {
                return Ok(("run_id", self.run.0));
            }
            Parent::Measurement => match row[1] {
                Value::Integer(one) if (0..self.measurements).contains(&one) => {
                    return Ok(("measurement_id", self.first + one));
                }
                _ => return Err(file.refuse("a row is of a measurement that is not there".into())),
            },
            Parent::Numbered => {
                return Err(file.refuse("its measurements are not in their order".into()));
            }
            Parent::Scope => "scope_id",
            Parent::Series => "series_id",
        };
        if let Some((last, number)) = &self.last
            && *last == row
        {
            return Ok((column, *number));
        }
        let number = self.scope(&row);
        let number = number.unwrap_or_else(|| Err(file.refuse("a number is too large".into())))?;
        self.last = Some((row, number));
        Ok((column, number))
    }

    /// The number of a scope, or of a series in it; `None` where a number is too large.
    fn scope(&self, row: &[Value]) -> Option<Result<i64, ParquetError>> {
        let text = |index: usize| match row.get(index) {
            Some(Value::Text(text)) => text.clone(),
            _ => String::new(),
        };
        let number = |index: usize| match row.get(index) {
            Some(Value::Integer(one)) => u32::try_from(*one).ok().map(Some),
            _ => Some(None),
        };
        let scope = Scope {
            host: text(2),
            subject: text(3),
            filesystem: text(4),
            sequence: number(5)?,
            repetition: number(6)?,
        };
        let inserter = Inserter {
            transaction: self.transaction,
            path: self.store,
            origin: Origin {
                run: self.run,
                experiment: number(1)?,
            },
        };
        let found = inserter.scope(&scope).and_then(|scope| match row.len() {
            7 => Ok(scope),
            _ => inserter.series_id(scope, &text(7), &text(8)),
        });
        Some(found.map_err(ParquetError::from))
    }

    /// Inserts a row into the file's table, and returns its number.
    fn insert(
        &self,
        file: &Opened,
        parent: Option<(&str, i64)>,
        own: Vec<Value>,
    ) -> Result<i64, ParquetError> {
        let columns = file.own().chain(parent.map(|(column, _)| (column, "?")));
        let (names, places): (Vec<&str>, Vec<&str>) = columns.unzip();
        let sql = format!(
            "INSERT INTO {} ({}) VALUES ({})",
            file.table.table,
            names.join(", "),
            places.join(", ")
        );
        let parent = parent.map(|(_, number)| Value::Integer(number));
        let values = params_from_iter(own.into_iter().chain(parent));
        let mut statement = self.transaction.prepare_cached(&sql);
        let done = statement.as_mut().map(|statement| statement.insert(values));
        match done {
            Ok(Ok(number)) => Ok(number),
            Ok(Err(error)) if error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) => {
                Err(file.refuse(error.to_string()))
            }
            Ok(Err(error)) => Err(failure("import a run", self.store, error).into()),
            Err(_) => Err(file.refuse("its table is not that of the store".to_owned())),
        }
    }

    /// Checks that everything read from a file can be read from the store.
    fn check(&self, file: &Opened) -> Result<(), ParquetError> {
        let read: fn(&Row<'_>) -> rusqlite::Result<()> = match file.table.table {
            "run" => |row| read_run(row).map(drop),
            "note" => |row| read_note(row).map(drop),
            "cell" => |row| read::<Cell>(row).map(drop),
            "measurement" => |row| read_measurement(row).map(drop),
            "member_use" => |row| read::<MemberUse>(row).map(drop),
            "published_figure" => |row| read::<PublishedFigure>(row).map(drop),
            "observation" => |row| read::<Observation>(row).map(drop),
            "command" => |row| read::<CommandRecord>(row).map(drop),
            "event" => |row| read::<EventRecord>(row).map(drop),
            "sample" => |row| read_point(row).map(drop),
            "finding" => |row| read::<Finding>(row).map(drop),
            _ => return Ok(()),
        };
        let joins = match file.table.parent {
            Parent::Run | Parent::Numbered => "",
            Parent::Measurement => "JOIN measurement USING (measurement_id)",
            Parent::Scope => "JOIN scope USING (scope_id)",
            Parent::Series => "JOIN series USING (series_id) JOIN scope USING (scope_id)",
        };
        let sql = format!(
            "SELECT * FROM {} {joins} WHERE run_id = ?",
            file.table.table
        );
        self.transaction
            .prepare(&sql)
            .and_then(|mut statement| {
                let mut rows = statement.query([self.run.0])?;
                while let Some(row) = rows.next()? {
                    read(row)?;
                }
                Ok(())
            })
            .map_err(|error| file.refuse(error.to_string()))
    }
}
