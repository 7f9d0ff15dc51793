//! `tollgate replay` as a process, with logs and real servers.
#![allow(clippy::panic, clippy::unwrap_used, clippy::print_stdout, reason = "a test")]

#[cfg(target_os = "linux")]
mod compressed;
mod formats;
mod interrupt;
mod manual;
mod pictures;
#[path = "../common/process.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod process;
mod refused;
mod rows;
mod rules;
mod side_by_side;
mod tool;
