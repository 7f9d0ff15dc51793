//! Existing Redis clients with the daemon.
//!
//! Clients that are not installed are skipped with a message on standard error.
#![allow(clippy::panic, clippy::print_stderr, clippy::unwrap_used, reason = "a test")]

mod applications;
#[path = "../common/client.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod client;
#[path = "../common/go.rs"]
mod go;
#[path = "../common/process.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod process;
mod programs;
mod redis_cli;
mod rust;

use process::Daemon;

/// Policies that do not recover during a test.
const POLICIES: &str = r#"
operators: loopback
policies:
  api: { limits: ["5/d log"] }
  many: { limits: ["1000/d log"] }
  pair: { limits: ["3/d fixed", "100/d log"] }
"#;

/// Starts a daemon with the policies and these lines of configuration.
fn start(more: &str) -> Daemon {
    Daemon::with_listener("--resp", &[("tollgate.yaml", &format!("{POLICIES}{more}"))])
}
