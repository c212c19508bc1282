//! Measurements on disk: SQLite, CSV and JSON Lines.
