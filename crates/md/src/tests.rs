mod bench;
mod random;
mod rules;
