//! The daemon, as who installs it runs it, but that it listens for clients of Redis alone.

use std::process::Command;

use anyhow::{Context, Result};
use bench::process::{self, Pinned};

#[derive(Debug)]
pub(crate) struct Daemon {
    process: Pinned,
    pub(crate) port: u16,
}

impl Daemon {
    pub(crate) fn start() -> Result<Self> {
        let mut command = Command::new(process::tollgate()?);
        command.args(["serve", "--config", CONFIG, "--http", "off", "--grpc", "off"]);
        command.args(["--resp", "127.0.0.1:0", "--metrics", "127.0.0.1:0"]);
        let mut process = Pinned::start(&command)?;
        let line = process.line_with("  RESP ")?;
        let port = line.trim().rsplit_once(':').context(line.clone())?.1.parse()?;
        Ok(Daemon { process, port })
    }

    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }
}

/// One policy, `api`, which no load exhausts.
const CONFIG: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/resp/tollgate.yaml");
