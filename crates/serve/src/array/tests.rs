//! The driver over real files.

mod arrays;
mod file;
mod hung;
mod nested;
mod sent;
