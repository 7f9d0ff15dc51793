//! Configuration files: the values that are read, and the report of every mistake.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test")]

mod fields;
mod layers;
mod mistakes;
mod overrides_file;
mod warnings;
