//! The daemon as its peers meet it: real sockets on a free port, decisions by a clock that stands
//! still.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test")]

mod access;
mod attack;
mod audit;
mod bad_input;
mod certificates;
mod client;
mod daemon;
mod domain_files;
mod domain_reload;
mod forward;
mod headers;
mod hostile;
mod hostile_http2;
mod ids;
mod metrics;
mod named_files;
mod openapi;
mod overrides;
mod protocol;
mod redis;
mod redis_cell;
mod reload;
mod resp;
mod rls;
mod rows;
mod rules_of_programs;
mod stop;
mod tls;
mod unix;
mod verbs;
mod xds;

/// Compares a generated file of the repository with its content.
fn assert_up_to_date(file: &str, expected: &str) {
    tollgate_testkit::assert_up_to_date(file, expected, "tollgate-server", "server");
}
