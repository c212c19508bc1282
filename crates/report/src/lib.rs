//! Tables, charts and the one-file HTML report.
