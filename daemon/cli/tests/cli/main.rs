//! The tool as a process: exit codes, lines, signals.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test")]

mod check;
mod config;
mod crowd;
mod deploy;
mod drain;
mod expressions;
mod listen;
mod manual;
mod metrics;
mod operation;
mod process;
mod promtool;
mod serve;
mod store;
mod systemd;
