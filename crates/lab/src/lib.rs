//! Experiments: suites, subjects, events and published figures, on benches behind one trait.
