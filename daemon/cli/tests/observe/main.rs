//! `tollgate observe` beside an application that counts by itself.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test")]

mod access;
mod counts;
#[path = "../common/process.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod process;
mod recipe;
mod several;
mod support;
