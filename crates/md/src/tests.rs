mod bench;
mod in_time;
mod random;
mod rules;
