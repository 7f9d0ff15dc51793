//! Runs the binary under the name `ratelimit`, with a controlled environment.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdout, Command, Output, Stdio};
use std::thread;

use rustix::process::{Pid, Signal, kill_process};
use tollgate_testkit::Folder;

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
        let Output { status, stdout, stderr } = self.command(variables).output().unwrap();
        let text = |x| String::from_utf8(x).unwrap();
        (status.code().unwrap(), text(stdout), text(stderr))
    }

    pub(crate) fn start(&self, variables: &[(&str, &str)]) -> Ratelimit {
        Ratelimit::spawn(&mut self.command(variables))
    }
}

/// A running process that is ready.
#[derive(Debug)]
pub(crate) struct Ratelimit {
    child: Child,
    output: BufReader<ChildStdout>,
    pub(crate) log: BufReader<ChildStderr>,
    pub(crate) greeting: String,
    listeners: BTreeMap<String, String>,
}

impl Ratelimit {
    fn spawn(command: &mut Command) -> Self {
        let mut child = command.spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut log = BufReader::new(child.stderr.take().unwrap());
        let mut greeting = String::new();
        while !greeting.contains("\n  limits ") {
            if output.read_line(&mut greeting).unwrap() == 0 {
                let mut error = String::new();
                log.read_to_string(&mut error).unwrap();
                panic!("the process ended: {greeting}{error}");
            }
        }
        let listeners = greeting.lines().filter_map(|line| {
            let (name, rest) = line.strip_prefix("  ")?.split_at_checked(18)?;
            let address = rest.split(',').next().unwrap_or_default();
            Some((name.trim().to_owned(), address.trim().to_owned()))
        });
        let listeners = listeners.collect();
        Ratelimit { child, output, log, greeting, listeners }
    }

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

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Reads the log up to a line that contains this text.
    pub(crate) fn read_log_until(&mut self, text: &str) -> String {
        let mut logged = String::new();
        while !logged.contains(text) {
            assert!(self.log.read_line(&mut logged).unwrap() > 0, "no {text:?} in {logged}");
        }
        logged
    }

    /// Waits for the process to exit. Returns the exit code.
    pub(crate) fn wait(mut self) -> Option<i32> {
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "", "nothing is printed after the greeting");
        self.child.wait().unwrap().code()
    }
}

impl Drop for Ratelimit {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends a `GET` request. Returns the status and the body.
pub(crate) fn get(address: SocketAddr, path: &str) -> (u16, String) {
    send(address, &format!("GET {path}"), "")
}

/// Sends a request over a new connection. Returns the status and the body.
pub(crate) fn send(address: SocketAddr, line: &str, body: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    let length = body.len();
    let head = format!("{line} HTTP/1.1\r\nhost: t\r\nconnection: close\r\n");
    write!(stream, "{head}content-length: {length}\r\n\r\n{body}").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}
