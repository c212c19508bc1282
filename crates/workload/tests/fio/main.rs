//! Jobs beside those of fio itself.

mod examples;
mod passes;
mod requests;
