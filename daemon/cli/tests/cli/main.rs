//! The tool as a process: exit codes, output, signals.
#![allow(clippy::panic, clippy::print_stderr, clippy::unwrap_used, reason = "a test")]

mod check;
#[path = "../common/client.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod client;
mod config;
mod connections;
mod deploy;
mod explain;
mod expressions;
#[path = "../common/go.rs"]
mod go;
mod helm;
mod leases;
mod listen;
mod manual;
#[cfg(target_os = "linux")]
mod memory;
mod metrics;
mod migration;
mod operate;
mod operation;
mod outage;
mod pages;
#[path = "../common/process.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod process;
mod prometheus;
mod serve;
mod store;
mod systemd;
