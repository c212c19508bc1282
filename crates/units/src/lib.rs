//! Units of storage work: time, bytes, sectors and rates; ranges of sectors, and sets of them.
//!
//! Time is integer nanoseconds, so that a simulation gives the same bytes on
//! every machine. Sizes are bytes or 512-byte sectors, never "blocks". Rates
//! are bytes per second: KB/s, MB/s and MiB/s exist only in printing.

mod digest;
mod gather;
mod misread;
mod packed;
mod parse;
mod path;
mod size;
mod span;
mod time;
mod visible;
mod words;

pub use digest::{FNV_BASIS, fnv1a};
pub use gather::{distinct, grouped};
pub use misread::{nearest, plain_words, suggestion};
pub use packed::{check_unpacked, text_of};
pub use parse::{LONGEST_TIME, ParseUnitError, bytes_in, parse_bytes, parse_duration};
pub use path::{PathError, cannot};
pub use size::{Bytes, BytesPerSecond, SECTOR_BYTES, Sectors};
pub use span::{Span, SpanSet};
pub use time::Nanos;
pub use visible::{acts, visible, visible_bytes, visible_lines, visible_path};
pub use words::{columns, count, hexadecimal, in_one_line, line_of, lists, reasons, table};
