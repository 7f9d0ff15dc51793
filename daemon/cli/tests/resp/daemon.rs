//! The daemon of the tests.

use crate::process::{self, TOKENS};

/// Policies that do not recover during a test.
const POLICIES: &str = r#"
policies:
  api: { limits: ["5/d log"] }
  many: { limits: ["1000/d log"] }
  pair: { limits: ["3/d fixed", "100/d log"] }
"#;

#[derive(Debug)]
pub(crate) struct Daemon {
    _process: process::Daemon,
    pub(crate) port: u16,
}

impl Daemon {
    pub(crate) fn start() -> Self {
        Daemon::start_with("")
    }

    /// Starts a daemon that requires the token [`process::SECRET`].
    pub(crate) fn guarded() -> Self {
        Daemon::start_with(TOKENS)
    }

    /// Starts a daemon with additional lines of configuration.
    pub(crate) fn start_with(more: &str) -> Self {
        let config = format!("{POLICIES}{more}");
        let process = process::Daemon::start("--resp", &[("tollgate.yaml", &config)]);
        Daemon { port: process.port, _process: process }
    }

    /// The URL for clients.
    pub(crate) fn url(&self, login: &str, more: &str) -> String {
        format!("redis://{login}127.0.0.1:{}/{more}", self.port)
    }
}
