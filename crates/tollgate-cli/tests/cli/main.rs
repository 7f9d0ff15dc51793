//! The tool as a process: exit codes, lines, signals.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test")]

mod check;
mod config;
mod crowd;
mod drain;
mod listen;
mod manual;
mod process;
mod serve;
mod store;
mod systemd;
