//! The program, called as `ratelimit`, with nothing in its environment but what a test says.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdout, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use rustix::process::{Pid, Signal, kill_process};

/// A directory of a test's own, with the program in it.
#[derive(Debug)]
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("tollgate-ratelimit-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(folder.join("config")).unwrap();
        symlink(env!("CARGO_BIN_EXE_tollgate"), folder.join("ratelimit")).unwrap();
        Folder(folder)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Writes a file of limits.
    pub(crate) fn limits(&self, name: &str, text: &str) {
        fs::write(self.0.join("config").join(name), text).unwrap();
    }

    /// The program with this environment and no other.
    pub(crate) fn command(&self, variables: &[(&str, &str)]) -> Command {
        let mut command = Command::new(self.0.join("ratelimit"));
        command.env_clear().env("RUNTIME_ROOT", &self.0);
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

    /// Runs it to its end: exit code, standard output, standard error.
    pub(crate) fn ends(&self, variables: &[(&str, &str)]) -> (i32, String, String) {
        let Output { status, stdout, stderr } = self.command(variables).output().unwrap();
        let text = |x| String::from_utf8(x).unwrap();
        (status.code().unwrap(), text(stdout), text(stderr))
    }

    pub(crate) fn start(&self, variables: &[(&str, &str)]) -> Ratelimit {
        Ratelimit::spawn(&mut self.command(variables))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// It, ready.
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
                let mut said = String::new();
                log.read_to_string(&mut said).unwrap();
                panic!("it ended: {greeting}{said}");
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

    /// Where a listener is, by its name in the greeting.
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

    /// What one statistic of `/stats` is; 0 if there is none.
    pub(crate) fn stat(&self, name: &str) -> u64 {
        let stats = self.debug("/stats");
        let mut values = stats.lines().filter_map(|line| line.split_once(": "));
        values.find(|(x, _)| *x == name).map_or(0, |(_, x)| x.parse().unwrap())
    }

    /// Asks until it answers this at `/healthcheck`.
    pub(crate) fn wait_for_health(&self, status: u16) {
        while get(self.http(), "/healthcheck").0 != status {
            thread::yield_now();
        }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Reads the log up to a line that has this in it.
    pub(crate) fn hear(&mut self, said: &str) -> String {
        let mut heard = String::new();
        while !heard.contains(said) {
            assert!(self.log.read_line(&mut heard).unwrap() > 0, "no {said:?} in {heard}");
        }
        heard
    }

    /// Waits for its end; its exit code.
    pub(crate) fn ended(mut self) -> Option<i32> {
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

/// `GET`s a page: the status and the body.
pub(crate) fn get(address: SocketAddr, path: &str) -> (u16, String) {
    ask(address, &format!("GET {path}"), "")
}

/// Asks on a connection of its own: the status and the body.
pub(crate) fn ask(address: SocketAddr, line: &str, body: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    let length = body.len();
    let head = format!("{line} HTTP/1.1\r\nhost: t\r\nconnection: close\r\n");
    write!(stream, "{head}content-length: {length}\r\n\r\n{body}").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}
