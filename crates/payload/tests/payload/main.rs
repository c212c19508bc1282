//! Buffers and the steps on them.

mod buffers;
mod steps;
