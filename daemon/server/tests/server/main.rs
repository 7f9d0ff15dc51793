//! The daemon as its peers meet it: real sockets on a free port, decisions by a clock that stands
//! still.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test")]

mod access;
mod attack;
mod audit;
mod bad_input;
mod certificates;
mod client;
mod config;
mod config_layers;
mod config_mistakes;
mod config_pages;
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
mod overrides_file;
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

/// Compares a file of the repository with what it should say, or writes that into it.
fn renewed(file: &str, expected: &str) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, expected).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == expected,
        "{file} is not up to date; renew it with UPDATE=1 cargo test -p tollgate-server --test server, \
         and look at what `git diff` says"
    );
}
