//! A replay has the same result as a limiter that is called line by line.
#![allow(clippy::as_conversions, clippy::panic, clippy::unwrap_used, reason = "a test")]

mod harness;
mod random_logs;
mod reference;
mod stopped;
mod suggestions;
