//! `tollgate replay` as a process, with logs and real servers.
#![allow(clippy::panic, clippy::unwrap_used, clippy::print_stdout, reason = "a test")]

mod formats;
mod interrupt;
mod manual;
mod pictures;
mod process;
mod refused;
mod rows;
mod rules;
mod side_by_side;
