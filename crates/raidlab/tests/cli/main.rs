//! The command as its users meet it: the built program, run in a folder of
//! its own.

#[cfg(target_os = "linux")]
mod array;
#[cfg(target_os = "linux")]
#[path = "../../../serve/tests/client/mod.rs"]
#[expect(dead_code, reason = "other crates' tests share it")]
mod client;
#[cfg(target_os = "linux")]
mod clusters;
mod explain;
mod faults;
mod foreign;
#[cfg(target_os = "linux")]
mod hostile;
#[cfg(unix)]
mod interrupt;
mod job_files;
#[cfg(target_os = "linux")]
mod kernel;
mod lab;
mod listings;
mod manners;
mod mistakes;
#[cfg(target_os = "linux")]
mod nested;
mod outputs;
#[cfg(target_os = "linux")]
mod plans;
#[cfg(target_os = "linux")]
mod resume;
mod run;
#[cfg(target_os = "linux")]
mod sealed;
#[cfg(target_os = "linux")]
mod security;
#[cfg(target_os = "linux")]
mod shards;
mod simulate;
mod strange_files;
mod strangers;
