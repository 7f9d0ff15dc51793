//! Runs the binary under the name `ratelimit`, with a controlled environment.

use std::collections::BTreeMap;
use std::fs;
use std::io::BufRead;
use std::net::SocketAddr;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use tollgate_testkit::Folder;

use crate::http;
use crate::process::{Daemon, output};

/// A temporary folder with limits, and the binary under the name `ratelimit`.
#[derive(Debug)]
pub(crate) struct Installation(Folder);

impl Installation {
    pub(crate) fn new() -> Self {
        let folder = Folder::create();
        fs::create_dir(folder.join("config")).unwrap();
        symlink(env!("CARGO_BIN_EXE_tollgate"), folder.join("ratelimit")).unwrap();
        Installation(folder)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Writes a file of limits.
    pub(crate) fn limits(&self, name: &str, text: &str) {
        // Renamed into place, because the running process may read the folder at any time.
        let written = self.0.write(name, text);
        fs::rename(written, self.0.join("config").join(name)).unwrap();
    }

    /// The command with these variables and no others, on free ports of the loopback address.
    pub(crate) fn command(&self, variables: &[(&str, &str)]) -> Command {
        let mut command = Command::new(self.0.join("ratelimit"));
        command.env_clear().env("RUNTIME_ROOT", self.path());
        for name in ["HOST", "GRPC_HOST", "DEBUG_HOST"] {
            command.env(name, "127.0.0.1");
        }
        for name in ["PORT", "GRPC_PORT", "DEBUG_PORT"] {
            command.env(name, "0");
        }
        command.envs(variables.iter().copied());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs the command until it exits. Returns the exit code, standard output and standard error.
    pub(crate) fn run(&self, variables: &[(&str, &str)]) -> (i32, String, String) {
        output(&mut self.command(variables), b"")
    }

    /// Starts the command and waits until it is ready.
    pub(crate) fn start(&self, variables: &[(&str, &str)]) -> Ratelimit {
        self.start_with(variables, &[])
    }

    /// The same with arguments.
    pub(crate) fn start_with(&self, variables: &[(&str, &str)], arguments: &[&str]) -> Ratelimit {
        let is_last = |line: &str| line.starts_with("  limits ");
        let daemon = Daemon::spawn_until(self.command(variables).args(arguments), is_last);
        let listeners = daemon.greeting.lines().filter_map(|line| {
            let (name, rest) = line.strip_prefix("  ")?.split_at_checked(18)?;
            let address = rest.split(',').next().unwrap_or_default();
            Some((name.trim().to_owned(), address.trim().to_owned()))
        });
        Ratelimit { listeners: listeners.collect(), daemon }
    }
}

/// A running process that is ready.
#[derive(Debug)]
pub(crate) struct Ratelimit {
    pub(crate) daemon: Daemon,
    listeners: BTreeMap<String, String>,
}

impl Ratelimit {
    /// The address of a listener, by its name in the greeting.
    pub(crate) fn at(&self, name: &str) -> SocketAddr {
        let address: SocketAddr = self.listeners[name].parse().unwrap();
        SocketAddr::from(([127, 0, 0, 1], address.port()))
    }

    pub(crate) fn grpc(&self) -> SocketAddr {
        self.at("gRPC for Envoy")
    }

    pub(crate) fn http(&self) -> SocketAddr {
        self.at("HTTP")
    }

    /// A page of the debug port.
    pub(crate) fn debug(&self, path: &str) -> String {
        let (status, body) = get(self.at("debug"), path);
        assert_eq!(status, 200, "{path}: {body}");
        body
    }

    /// The value of a statistic of `/stats`; 0 if it is missing.
    pub(crate) fn stat(&self, name: &str) -> u64 {
        let stats = self.debug("/stats");
        let mut values = stats.lines().filter_map(|line| line.split_once(": "));
        values.find(|(known, _)| *known == name).map_or(0, |(_, value)| value.parse().unwrap())
    }

    /// Waits until `/healthcheck` returns this status.
    pub(crate) fn wait_for_health(&self, status: u16) {
        while get(self.http(), "/healthcheck").0 != status {
            thread::yield_now();
        }
    }

    /// Reads the log up to a line that contains this text.
    pub(crate) fn read_log_until(&mut self, text: &str) -> String {
        let (mut logged, log) = (String::new(), self.daemon.log.as_mut().unwrap());
        while !logged.contains(text) {
            assert!(log.read_line(&mut logged).unwrap() > 0, "no {text:?} in {logged}");
        }
        logged
    }
}

/// Sends a `GET` request. Returns the status and the body.
pub(crate) fn get(address: SocketAddr, path: &str) -> (u16, String) {
    send(address, &format!("GET {path}"), "")
}

/// Sends a request over a new connection. Returns the status and the body.
pub(crate) fn send(address: SocketAddr, line: &str, body: &str) -> (u16, String) {
    let response = http::send(address, line, &[], body);
    (response.status, response.body)
}
