//! What a replay finds is what one finds who asks a limiter line by line.
#![allow(clippy::as_conversions, clippy::panic, clippy::unwrap_used, reason = "a test")]

mod asking;
mod found;
mod plain;
mod stopped;
mod suggested;
