//! Opening a file as a store: a new one, one of ours, or another file that must not be touched.
//!
//! A path to anything but a regular file is not opened at all. A file is touched only when it is
//! certain to be a store of this version, or empty. The order of the questions: does it open; is it
//! an `SQLite` file; is its application id ours, or is it empty; is its schema version ours, or an
//! older one; is it sound. Tables, id and version of a new store are written in one transaction, so
//! that a killed process leaves an empty file or a store.

use crate::StoreError;
use crate::output::{Format, Found, beside, folder_of, look};
use crate::text::visible_path;
use rusqlite::{Connection, ErrorCode, OpenFlags, Params, TransactionBehavior};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The application id of a store, "rlab" in ASCII, by which `file(1)` and raidlab recognize one.
pub(crate) const APPLICATION_ID: i32 = 0x726c_6162;

/// Version of the tables. A change of `schema.sql` needs a new one.
pub const SCHEMA_VERSION: i32 = 6;

/// The oldest version that is upgraded to [`SCHEMA_VERSION`] when it is opened.
const OLDEST_VERSION: i32 = 1;

/// The longest wait for another process's transaction. Transactions here are one row each, so a
/// longer wait means that the other process hangs.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// Opens `path`, creating the file if there is none.
pub(crate) fn open(path: &Path) -> Result<Connection, StoreError> {
    check_place(path)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
    prepare(connect(path, &file(path), flags)?, path)
}

/// The name of a store's file for `SQLite`, which does not take `:memory:` or the empty name
/// for a file.
fn file(path: &Path) -> PathBuf {
    Path::new(".").join(path)
}

fn connect(path: &Path, name: &Path, flags: OpenFlags) -> Result<Connection, StoreError> {
    let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection =
        Connection::open_with_flags(name, flags).map_err(|source| unwritable(path, &source))?;
    let waits = connection.busy_timeout(BUSY_TIMEOUT);
    waits.map_err(|error| failure("open", path, error))?;
    Ok(connection)
}

/// Returns the connection if the store is whole and of this version; `old` makes the error for a
/// store of an older version.
fn current(
    connection: Connection,
    path: &Path,
    old: impl FnOnce(PathBuf, i32) -> StoreError,
) -> Result<Connection, StoreError> {
    match state(&connection, path)? {
        State::Ours => check(&connection, path).map(|()| connection),
        State::Empty => Err(StoreError::NoRuns { path: path.into() }),
        State::Old(found) => Err(old(path.into(), found)),
    }
}

/// Opens a store that cannot be written to, as on a disk mounted read-only.
pub(crate) fn open_unwritable(path: &Path) -> Result<Connection, StoreError> {
    let mut flags = OpenFlags::SQLITE_OPEN_READ_ONLY;
    let mut name = file(path);
    // SQLite makes two files beside such a database to read it, unless it is told that there is no
    // writer. While there is one, the first of the files exists.
    if has_write_ahead_log(path) && !has_journal(path) {
        flags |= OpenFlags::SQLITE_OPEN_URI;
        name = immutable(&name).into();
    }
    current(connect(path, &name, flags)?, path, |path, found| {
        let why = format!(
            "it has schema version {found} and must be brought up to date, but may not be \
             written to; copy it to where it may"
        );
        StoreError::Unwritable { path, why }
    })
}

/// A path as an `SQLite` URI with the option `immutable` (<https://www.sqlite.org/uri.html>, 3.1).
fn immutable(path: &Path) -> String {
    let mut uri = "file:".to_owned();
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' => {
                uri.push(char::from(*byte));
            }
            _ => uri.push_str(&format!("%{byte:02x}")),
        }
    }
    uri + "?immutable=1"
}

/// Whether the journal beside a database holds changes of it.
fn has_journal(path: &Path) -> bool {
    std::fs::metadata(beside(path, "-wal")).is_ok_and(|found| found.len() > 0)
}

/// Opens a store of this version read-only, without changing the file.
pub(crate) fn open_to_read(path: &Path) -> Result<Connection, StoreError> {
    check_place(path)?;
    if !path.exists() {
        let path = path.to_owned();
        return Err(StoreError::Missing { path });
    }
    // A database with a journal beside it can only be read with that journal, which a reader
    // without write permission cannot remove again.
    let access = match has_write_ahead_log(path) {
        true => OpenFlags::SQLITE_OPEN_READ_WRITE,
        false => OpenFlags::SQLITE_OPEN_READ_ONLY,
    };
    let connection = connect(path, &file(path), access)?;
    current(connection, path, |path, found| StoreError::OtherVersion {
        path,
        found,
        supported: SCHEMA_VERSION,
    })
}

/// Whether a database's header says that it is written by way of a write-ahead log: byte
/// 18 is 2 then (<https://www.sqlite.org/fileformat2.html>, 1.3.3).
fn has_write_ahead_log(path: &Path) -> bool {
    let mut header = [0; 19];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut header));
    read.is_ok() && header[18] == 2
}

/// Checks that a path may be that of a store, as far as can be told without opening a database,
/// which is checked when it is opened.
pub(crate) fn check_place(path: &Path) -> Result<(), StoreError> {
    let path = path.to_owned();
    match look(&path) {
        Ok(Found::Nothing | Found::Empty | Found::Ours(Format::Store) | Found::Database(_))
        | Err(_) => Ok(()),
        Ok(Found::Ours(_) | Found::Other) => Err(StoreError::NotADatabase { path }),
        Ok(found) => Err(StoreError::NotAFile { path, found }),
    }
}

/// Opens a store in memory, which lives as long as its connection.
pub(crate) fn open_in_memory() -> Result<Connection, StoreError> {
    let path = Path::new(":memory:");
    let connection = Connection::open_in_memory().map_err(|e| failure("open", path, e))?;
    prepare(connection, path)
}

fn prepare(mut connection: Connection, path: &Path) -> Result<Connection, StoreError> {
    let fail = |error| failure("open", path, error);
    // One transaction for all: another process may be creating the store between two queries.
    let snapshot = connection.unchecked_transaction().map_err(fail)?;
    let found = state(&snapshot, path)?;
    snapshot.finish().map_err(fail)?;
    match found {
        State::Empty => create(&mut connection, path)?,
        State::Ours => check(&connection, path)?,
        State::Old(_) => {
            check(&connection, path)?;
            migrate(&mut connection, path)?;
        }
    }
    write_ahead(&connection).map_err(fail)?;
    // A row on the host bench costs minutes to hours, so each is synced to the disk.
    let lasting = "PRAGMA synchronous = full; PRAGMA foreign_keys = on";
    connection.execute_batch(lasting).map_err(fail)?;
    Ok(connection)
}

/// Switches to a write-ahead log, so that readers and the writer do not block each other. While
/// other processes open the store for the first time too, `SQLite` refuses this without waiting.
fn write_ahead(connection: &Connection) -> rusqlite::Result<()> {
    let deadline = Instant::now() + BUSY_TIMEOUT;
    loop {
        match connection.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(())) {
            Err(error) if is_busy(&error) && Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(5));
            }
            done => return done,
        }
    }
}

fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)
    )
}

#[derive(PartialEq, Eq)]
enum State {
    Empty,
    /// The file is a store of this older version.
    Old(i32),
    Ours,
}

fn state(connection: &Connection, path: &Path) -> Result<State, StoreError> {
    let fail = |error| failure("read the header", path, error);
    let header = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i32>(0));
    let application_id = header("application_id").map_err(fail)?;
    let found = header("user_version").map_err(fail)?;
    if application_id == APPLICATION_ID {
        return match found {
            SCHEMA_VERSION => Ok(State::Ours),
            OLDEST_VERSION..SCHEMA_VERSION => Ok(State::Old(found)),
            _ => Err(StoreError::OtherVersion {
                path: path.to_owned(),
                found,
                supported: SCHEMA_VERSION,
            }),
        };
    }
    let objects: i64 = connection
        .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
        .map_err(fail)?;
    if application_id == 0 && found == 0 && objects == 0 {
        Ok(State::Empty)
    } else {
        Err(StoreError::Foreign {
            path: path.to_owned(),
            application_id,
        })
    }
}

fn create(connection: &mut Connection, path: &Path) -> Result<(), StoreError> {
    let fail = |error| failure("create the tables", path, error);
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(fail)?;
    // Another process may have created the store between the first look and the lock.
    if state(&transaction, path)? == State::Empty {
        transaction
            .execute_batch(concat!(
                include_str!("schema.sql"),
                include_str!("records.sql")
            ))
            .map_err(fail)?;
        transaction
            .pragma_update(None, "application_id", APPLICATION_ID)
            .map_err(fail)?;
        transaction
            .pragma_update(None, "user_version", SCHEMA_VERSION)
            .map_err(fail)?;
    }
    transaction.commit().map_err(fail)
}

/// The migrations from each version to the next, the oldest first.
const MIGRATIONS: [&str; 5] = [
    include_str!("migrate_1_to_2.sql"),
    include_str!("migrate_2_to_3.sql"),
    include_str!("migrate_3_to_4.sql"),
    include_str!("migrate_4_to_5.sql"),
    include_str!("migrate_5_to_6.sql"),
];

/// Migrates a store of an older version to this one, all or nothing.
fn migrate(connection: &mut Connection, path: &Path) -> Result<(), StoreError> {
    let fail = |error| failure("bring the tables up to date", path, error);
    // Tables are replaced while others refer to them by name.
    connection
        .pragma_update(None, "foreign_keys", false)
        .map_err(fail)?;
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(fail)?;
    if let State::Old(version) = state(&transaction, path)? {
        let steps = (OLDEST_VERSION..).zip(MIGRATIONS);
        let steps = steps.filter(|(from, _)| *from >= version);
        let mut steps: Vec<&str> = steps.map(|(_, step)| step).collect();
        match version {
            1 => steps.push(include_str!("records.sql")),
            // The tables of records came with version 2, and changed once.
            2 => steps.insert(1, include_str!("migrate_records_2_to_3.sql")),
            _ => {}
        }
        transaction.execute_batch(&steps.concat()).map_err(fail)?;
        transaction
            .pragma_update(None, "user_version", SCHEMA_VERSION)
            .map_err(fail)?;
    }
    transaction.commit().map_err(fail)
}

fn check(connection: &Connection, path: &Path) -> Result<(), StoreError> {
    let verdict: String = connection
        .query_row("PRAGMA quick_check(1)", [], |row| row.get(0))
        .map_err(|error| failure("check", path, error))?;
    if verdict == "ok" {
        return Ok(());
    }
    Err(StoreError::Corrupt {
        path: path.to_owned(),
        detail: verdict.trim().replace('\n', " "),
    })
}

/// The reason why a file cannot be opened as a store: `SQLite` only says that it cannot.
fn unwritable(path: &Path, source: &rusqlite::Error) -> StoreError {
    let folder = folder_of(path);
    let why = if path.is_dir() {
        "it is a folder; name a file in it".to_owned()
    } else if !folder.exists() {
        format!("there is no folder {}; make it first", visible_path(folder))
    } else if !folder.is_dir() {
        format!("{} is no folder", visible_path(folder))
    } else if source.sqlite_error_code() == Some(ErrorCode::CannotOpen) {
        "neither it nor its folder may be written to".to_owned()
    } else {
        "it may be read only".to_owned()
    };
    let path = path.to_owned();
    StoreError::Unwritable { path, why }
}

/// The most useful error for an `SQLite` failure.
pub(crate) fn failure(action: &'static str, path: &Path, source: rusqlite::Error) -> StoreError {
    let path: PathBuf = path.to_owned();
    match source.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => StoreError::NotADatabase { path },
        Some(ErrorCode::DatabaseCorrupt) => StoreError::Corrupt {
            path,
            detail: source.to_string(),
        },
        // A value differs from what was written there.
        None if is_another_value(&source) => StoreError::Corrupt {
            path,
            detail: source.to_string(),
        },
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreError::Busy { path },
        Some(ErrorCode::DiskFull) => StoreError::Full { path },
        Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
            unwritable(&path, &source)
        }
        _ => StoreError::Query {
            action,
            path,
            source,
        },
    }
}

/// Executes a statement, and returns how many rows it changed.
pub(crate) fn execute(
    connection: &Connection,
    path: &Path,
    action: &'static str,
    sql: &str,
    values: impl Params,
) -> Result<usize, StoreError> {
    let statement = connection.prepare_cached(sql);
    let done = statement.and_then(|mut statement| statement.execute(values));
    done.map_err(|error| failure(action, path, error))
}

/// Whether a value is of a type or a form that its column never has.
const fn is_another_value(error: &rusqlite::Error) -> bool {
    matches!(
        error,
        rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::IntegralValueOutOfRange(..)
            | rusqlite::Error::InvalidColumnType(..)
            | rusqlite::Error::Utf8Error(..)
    )
}
