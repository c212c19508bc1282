//! Jobs beside those of fio itself.

mod examples;
mod requests;
