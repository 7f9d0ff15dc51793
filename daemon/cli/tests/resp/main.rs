//! Existing Redis clients with the daemon.
//!
//! Clients that are not installed are skipped with a message on standard error.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test")]

mod daemon;
mod ioredis;
mod process;
mod redis_cli;
mod redis_py;
mod rust;
mod script;
