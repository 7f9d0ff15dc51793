//! Clients of Redis that others wrote, and the daemon.
//!
//! A client that is not installed is skipped, and standard error says so.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test")]

mod daemon;
mod ioredis;
mod process;
mod redis_cli;
mod redis_py;
mod rust;
mod script;
