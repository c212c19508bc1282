//! Which numbers to believe: rules over measurements, settings and environment.
