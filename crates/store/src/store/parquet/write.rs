//! A run's tables written as Parquet.

use super::{
    CREATED_BY, Column, DIGEST, KEYS, Kind, Parent, ParquetError, RATES, TABLES, Table,
    digest_of_row, message, path, version,
};
use crate::output::{Format, OutputError, OutputFile};
use crate::schema::{failure, open_in_memory};
use crate::{Operation, RunId, RunSummary, Store};
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use parquet::basic::Compression;
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::Result as Encoded;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::parser::parse_message_type;
use raidlab_units::{FNV_BASIS, cannot};
use rusqlite::Connection;
use rusqlite::types::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The largest number of rows in a group.
const GROUP_ROWS: usize = 65_536;
/// The bytes of text after which a group ends too, so that commands' output fits into memory.
const GROUP_BYTES: usize = 32 << 20;

impl Store {
    /// Writes a run as Parquet into a folder, which is created if needed: every file appears whole,
    /// and none before all are written.
    ///
    /// # Errors
    /// The store cannot be read, the folder cannot be written to, or it has a file of that name
    /// that raidlab did not write.
    pub fn write_parquet(&self, run: &RunSummary, folder: &Path) -> Result<(), ParquetError> {
        // A run that is under way would otherwise give members of measurements that are missing
        // in the files.
        let _snapshot = self.snapshot()?;
        std::fs::create_dir_all(folder)
            .map_err(cannot("make the folder", folder))
            .map_err(ParquetError::Folder)?;
        let mut files = Vec::new();
        let new = open_in_memory()?;
        for table in TABLES.iter() {
            let mut columns = table.leading();
            columns.extend(table.own(&new)?);
            files.push(self.write_table(run, folder, table, columns)?);
        }
        files.push(self.write_histograms(run, folder)?);
        for file in files {
            file.finish()?;
        }
        Ok(())
    }

    fn write_table(
        &self,
        run: &RunSummary,
        folder: &Path,
        table: &Table,
        columns: Vec<Column>,
    ) -> Result<OutputFile, ParquetError> {
        let path = table.path(folder);
        let select = select(table, &columns);
        let mut writer = Writer::begin(path, table.file, columns, run)?;
        each_row(&self.connection, &self.path, run.id, &select, |row| {
            writer.add(row)
        })?;
        writer.end()
    }

    /// Writes the counts of each measurement's latencies, where they are known.
    fn write_histograms(
        &self,
        run: &RunSummary,
        folder: &Path,
    ) -> Result<OutputFile, ParquetError> {
        let columns = vec![
            Column::new("run", Kind::Text, true),
            Column::new("measurement", Kind::Integer, true),
            Column::new("upper_ns", Kind::Integer, true),
            Column::new("count", Kind::Integer, true),
        ];
        let numbered = Table {
            file: "histograms",
            table: "measurement",
            parent: Parent::Numbered,
            order: "measurement",
        };
        let mut read = columns[..2].to_vec();
        read.push(Column::new("latency_histogram", Kind::Bytes, true));
        let select = select(&numbered, &read);
        let path = path(folder, numbered.file);
        let mut writer = Writer::begin(path, numbered.file, columns, run)?;
        each_row(&self.connection, &self.path, run.id, &select, |row| {
            let [name, measurement, Value::Blob(bytes)] = row.as_slice() else {
                return Ok(());
            };
            let Some(histogram) = decoded(bytes) else {
                return Ok(());
            };
            for bucket in histogram.iter_recorded() {
                let upper = histogram.highest_equivalent(bucket.value_iterated_to());
                let count = bucket.count_at_value();
                let numbers = [upper, count].map(|one| i64::try_from(one).unwrap_or(i64::MAX));
                let [upper, count] = numbers.map(Value::Integer);
                writer.add(vec![name.clone(), measurement.clone(), upper, count])?;
            }
            Ok(())
        })?;
        writer.end()
    }
}

/// Passes on each row that a query of a run returns, one at a time.
pub(super) fn each_row(
    connection: &Connection,
    store: &Path,
    run: RunId,
    select: &str,
    mut take: impl FnMut(Vec<Value>) -> Result<(), ParquetError>,
) -> Result<(), ParquetError> {
    let fail = |error| ParquetError::from(failure("read a table", store, error));
    let mut statement = connection.prepare(select).map_err(fail)?;
    let width = statement.column_count();
    let mut rows = statement.query([run.0]).map_err(fail)?;
    while let Some(row) = rows.next().map_err(fail)? {
        let values: rusqlite::Result<Vec<Value>> = (0..width).map(|index| row.get(index)).collect();
        take(values.map_err(fail)?)?;
    }
    Ok(())
}

/// The query for these columns of a run's rows of a table.
pub(super) fn select(table: &Table, columns: &[Column]) -> String {
    let wanted = columns.iter().map(|column| match column {
        Column { name, .. } if name == "run" => "(SELECT name FROM run WHERE run_id = ?1)".into(),
        Column { name, kind, .. } if *kind == Kind::Instant => {
            format!("unixepoch({name}) * 1000000")
        }
        Column { name, required, .. } if !required && table.may_be_unreported(name) => {
            reported(table, name)
        }
        Column { name, .. } => name.clone(),
    });
    let wanted: Vec<String> = wanted.collect();
    let joins = match table.parent {
        Parent::Run => "WHERE run_id = ?1",
        Parent::Numbered | Parent::Measurement => {
            "JOIN (SELECT measurement_id, row_number() OVER (ORDER BY experiment, measurement_id)
             - 1 AS measurement FROM measurement WHERE run_id = ?1) USING (measurement_id)"
        }
        // A seal belongs to the store's file, as it covers the row numbers there.
        Parent::Scope if table.table == "observation" => {
            "JOIN scope USING (scope_id) WHERE run_id = ?1 AND name <> 'shard.fnv1a'"
        }
        Parent::Scope => "JOIN scope USING (scope_id) WHERE run_id = ?1",
        Parent::Series => {
            "JOIN series USING (series_id) JOIN scope USING (scope_id) WHERE run_id = ?1"
        }
    };
    format!(
        "SELECT {} FROM {} {joins} ORDER BY {}",
        wanted.join(", "),
        table.table,
        table.order
    )
}

/// The value of a rate or a latency, or NULL if it was not reported. A measurement's rate of 0 was
/// reported where a job had time and did nothing ([`Measurement::did_nothing`]).
///
/// [`Measurement::did_nothing`]: crate::Measurement::did_nothing
fn reported(table: &Table, column: &str) -> String {
    if table.table != "measurement" || !RATES.contains(&column) {
        return format!("nullif({column}, 0)");
    }
    let background = Operation::ALL.iter().filter(|op| op.is_background());
    let background: Vec<String> = background.map(|op| format!("'{}'", op.name())).collect();
    format!(
        "CASE WHEN {column} <> 0 OR total_ios = 0 AND total_bytes = 0 AND runtime_ns > 0
         AND op NOT IN ({}) THEN {column} END",
        background.join(", ")
    )
}

/// Decodes a stored histogram; `None` for an empty one, and one that cannot be read, as a foreign
/// store may hold.
fn decoded(bytes: &[u8]) -> Option<Histogram<u64>> {
    Deserializer::new().deserialize(&mut &*bytes).ok()
}

/// The values of a column of the group that is being filled.
enum Values {
    Integers(Vec<i64>),
    Reals(Vec<f64>),
    Texts(Vec<ByteArray>),
}

/// A column of the group that is being filled.
struct Filled {
    column: Column,
    values: Values,
    /// One number per row: 1 where it has a value, 0 where it has none.
    levels: Vec<i16>,
}

/// A file that is being written.
struct Writer {
    path: PathBuf,
    file: SerializedFileWriter<OutputFile>,
    columns: Vec<Filled>,
    rows: usize,
    bytes: usize,
    /// The digest of all rows so far.
    digest: u64,
}

impl Writer {
    fn begin(
        path: PathBuf,
        name: &str,
        columns: Vec<Column>,
        run: &RunSummary,
    ) -> Result<Self, ParquetError> {
        let run = &run.run;
        let said = [
            version(),
            run.name.clone(),
            run.seed.to_string(),
            run.raidlab_version.clone(),
            run.plan_hash.clone(),
        ];
        let said = KEYS
            .into_iter()
            .zip(said)
            .map(|(key, value)| KeyValue::new(key.to_owned(), value));
        let properties = WriterProperties::builder()
            .set_created_by(CREATED_BY.to_owned())
            .set_compression(Compression::SNAPPY)
            .set_key_value_metadata(Some(said.collect()))
            .build();
        let out = OutputFile::begin(&path, Format::Parquet)?;
        let file = parse_message_type(&message(name, &columns)).and_then(|schema| {
            SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties))
        });
        let file = file.map_err(|source| failed(&path, source))?;
        let columns = columns.into_iter().map(Filled::new).collect();
        Ok(Self {
            path,
            file,
            columns,
            rows: 0,
            bytes: 0,
            digest: FNV_BASIS,
        })
    }

    fn add(&mut self, row: Vec<Value>) -> Result<(), ParquetError> {
        self.digest = digest_of_row(self.digest, &row);
        for (column, value) in self.columns.iter_mut().zip(row) {
            self.bytes += column.push(value).map_err(|why| ParquetError::Refused {
                path: self.path.clone(),
                why,
            })?;
        }
        self.rows += 1;
        if self.rows == GROUP_ROWS || self.bytes >= GROUP_BYTES {
            self.flush()?;
        }
        Ok(())
    }

    /// Writes the group that has been filled.
    fn flush(&mut self) -> Result<(), ParquetError> {
        let columns = &mut self.columns;
        let written = self.file.next_row_group().and_then(|mut group| {
            for column in columns {
                if let Some(writer) = group.next_column()? {
                    column.write(writer)?;
                }
            }
            group.close().map(drop)
        });
        (self.rows, self.bytes) = (0, 0);
        written.map_err(|source| failed(&self.path, source))
    }

    /// Ends the file, which then lacks only its name.
    fn end(mut self) -> Result<OutputFile, ParquetError> {
        if self.rows > 0 {
            self.flush()?;
        }
        let digest = Some(format!("{:016x}", self.digest));
        (self.file).append_key_value_metadata(KeyValue::new(DIGEST.to_owned(), digest));
        let file = self.file.into_inner();
        file.map_err(|source| failed(&self.path, source))
    }
}

impl Filled {
    fn new(column: Column) -> Self {
        let values = match column.kind {
            Kind::Integer | Kind::Instant => Values::Integers(Vec::new()),
            Kind::Real => Values::Reals(Vec::new()),
            Kind::Text | Kind::Bytes => Values::Texts(Vec::new()),
        };
        let levels = Vec::new();
        Self {
            column,
            values,
            levels,
        }
    }

    /// Adds the value of the next row, and returns its size in bytes.
    fn push(&mut self, value: Value) -> Result<usize, String> {
        let mut bytes = size_of::<i64>();
        match (&mut self.values, value) {
            (_, Value::Null) if !self.column.required => {
                self.levels.push(0);
                return Ok(0);
            }
            (Values::Integers(all), Value::Integer(one)) => all.push(one),
            (Values::Reals(all), Value::Real(one)) => all.push(one),
            (Values::Texts(all), Value::Text(one)) => {
                bytes = one.len();
                all.push(one.into_bytes().into());
            }
            (Values::Texts(all), Value::Blob(one)) => {
                bytes = one.len();
                all.push(one.into());
            }
            (_, value) => {
                let (name, found) = (&self.column.name, value.data_type());
                return Err(format!(
                    "column {name}: the store has a value of type {found}"
                ));
            }
        }
        self.levels.push(1);
        Ok(bytes)
    }

    fn write(&mut self, mut writer: SerializedColumnWriter<'_>) -> Encoded<()> {
        let levels = (!self.column.required).then_some(self.levels.as_slice());
        match &mut self.values {
            Values::Integers(all) => {
                (writer.typed::<Int64Type>()).write_batch(all, levels, None)?;
                all.clear();
            }
            Values::Reals(all) => {
                (writer.typed::<DoubleType>()).write_batch(all, levels, None)?;
                all.clear();
            }
            Values::Texts(all) => {
                (writer.typed::<ByteArrayType>()).write_batch(all, levels, None)?;
                all.clear();
            }
        }
        self.levels.clear();
        writer.close()
    }
}

fn failed(path: &Path, source: parquet::errors::ParquetError) -> ParquetError {
    let path = path.to_owned();
    // A failed write of the disk is no fault of the bytes.
    match source {
        parquet::errors::ParquetError::External(cause) => match cause.downcast() {
            Ok(source) => OutputError::from(cannot("write", &path)(*source)).into(),
            Err(cause) => ParquetError::Format {
                path,
                source: parquet::errors::ParquetError::External(cause),
            },
        },
        source => ParquetError::Format { path, source },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Taken;
    use crate::tests::{cell, measurement, run};

    /// Such files had 0 for a latency that was not reported, in columns that are never NULL.
    #[test]
    fn files_from_before_unreported_values_were_null_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let mut store = Store::open_in_memory().unwrap();
        let id = store.begin_run(&run("a")).unwrap();
        let mut row = measurement(0);
        row.latency = crate::Latency::default();
        store.add_cell(id, &cell(row)).unwrap();
        let summary = store.run_by_name("a").unwrap();
        store.write_parquet(&summary, folder.path()).unwrap();
        let new = open_in_memory().unwrap();
        let table = TABLES.iter().find(|one| one.table == "measurement");
        let mut columns = table.unwrap().leading();
        columns.extend(table.unwrap().own(&new).unwrap());
        for column in &mut columns {
            column.required |= table.unwrap().may_be_unreported(&column.name);
        }
        let old = store.write_table(&summary, folder.path(), table.unwrap(), columns);
        old.unwrap().finish().unwrap();
        let mut other = Store::open_in_memory().unwrap();
        let taken = |store: &mut Store| store.read_parquet(folder.path()).unwrap();
        assert_eq!(taken(&mut other), Taken::As("a".to_owned()));
        assert_eq!(taken(&mut other), Taken::Known("a".to_owned()));
        let to = other.run_by_name("a").unwrap().id;
        assert_eq!(
            other.measurements(to).unwrap(),
            store.measurements(id).unwrap()
        );
    }

    #[test]
    fn a_full_disk_is_no_fault_of_the_bytes() {
        let path = Path::new("runs/today/run.parquet");
        let full = std::io::Error::from(std::io::ErrorKind::StorageFull);
        let error = failed(path, full.into());
        assert!(matches!(error, ParquetError::Output(_)), "{error:?}");
        let wrong = parquet::errors::ParquetError::EOF("no end".to_owned());
        assert!(matches!(failed(path, wrong), ParquetError::Format { .. }));
    }
}
