//! What is fitted, and what is left out of it.

mod fit;
mod left_out;
