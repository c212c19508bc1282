//! Measurements on disk: SQLite, CSV and JSON Lines.

mod measurement;

pub use measurement::{
    Direction, Latency, Measurement, MemberUse, PublishedFigure, Role, Run, Setting,
};
