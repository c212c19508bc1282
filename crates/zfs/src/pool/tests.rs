//! The pool against a crude disk in a small event loop.

mod bench;
mod comparison;
mod rules;
mod shuffled;
