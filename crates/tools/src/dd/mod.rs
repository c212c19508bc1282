//! dd: its operands on each system, and what it says at its end.

mod operands;
mod output;
#[cfg(test)]
mod tests;

pub use operands::{Dialect, End, Flags, Invocation, OperandError};
pub use output::parse;

pub(crate) use output::is_in;
