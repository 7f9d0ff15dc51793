//! Configuration files: the values that are read, and the report of every mistake.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test")]

mod fields;
mod layers;
mod mistakes;
mod overrides_file;
mod pages;

/// Compares a generated file of the repository with its content.
fn assert_up_to_date(file: &str, expected: &str) {
    tollgate_testkit::assert_up_to_date(file, expected, "tollgate-config", "config");
}
