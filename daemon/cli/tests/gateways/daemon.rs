//! The daemon on a fixed port, so that it can be restarted.

use std::fs::File;
use std::io::Write;
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

/// The binary `tollgate`.
pub(crate) fn tollgate() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate"));
    command.env_remove("TOLLGATE_URL").stdin(Stdio::null());
    command
}

/// A running daemon, killed on drop.
#[derive(Debug)]
pub(crate) struct Daemon {
    child: Child,
    config: PathBuf,
    port: u16,
    /// The port for Envoy's rate limit filter.
    grpc: Option<u16>,
}

impl Daemon {
    /// Starts a daemon and waits until it listens.
    pub(crate) fn start(config: &Path, port: u16) -> Self {
        let child = spawn(config, port, None);
        Self { child, config: config.to_owned(), port, grpc: None }
    }

    /// Starts a daemon for Envoy's rate limit filter.
    pub(crate) fn start_for_envoy(config: &Path, port: u16, grpc: u16) -> Self {
        let child = spawn(config, port, Some(grpc));
        Self { child, config: config.to_owned(), port, grpc: Some(grpc) }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Starts the daemon again on the same port after [`Self::kill`].
    pub(crate) fn restart(&mut self) {
        self.child = spawn(&self.config, self.port, self.grpc);
    }
}

fn spawn(config: &Path, port: u16, grpc: Option<u16>) -> Child {
    let log = File::options().create(true).append(true).open(config.with_extension("log")).unwrap();
    let mut command = tollgate();
    command.args(["serve", "--config"]).arg(config).args([
        "--http",
        &format!("127.0.0.1:{port}"),
        "--metrics",
        "off",
        "--grpc",
        &grpc.map_or("off".to_owned(), |port| format!("127.0.0.1:{port}")),
        "--resp",
        "off",
    ]);
    command.stdout(log.try_clone().unwrap()).stderr(log);
    let mut child = command.spawn().unwrap();
    // Half a minute; normally it takes some milliseconds.
    for _ in 0..3_000 {
        if TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return child;
        }
        if child.try_wait().unwrap().is_some() {
            break;
        }
        thread::sleep(Duration::from_millis(10));
    }
    let _ = child.kill();
    panic!("the daemon does not listen:\n{}", log_of(config));
}

fn log_of(config: &Path) -> String {
    std::fs::read_to_string(config.with_extension("log")).unwrap_or_default()
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // The test may have killed it.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if thread::panicking() {
            let _ = writeln!(std::io::stderr(), "the daemon's log:\n{}", log_of(&self.config));
        }
    }
}
