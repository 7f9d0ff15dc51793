//! Runs the binary.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStderr, ChildStdout, Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};

pub(crate) fn tollgate() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate"));
    command.env_remove("TOLLGATE_URL").env_remove("TOLLGATE_CONFIG").stdin(Stdio::null());
    command
}

/// Runs the binary. Returns the exit code, standard output and standard error.
pub(crate) fn run<I: IntoIterator<Item: AsRef<OsStr>>>(arguments: I) -> (i32, String, String) {
    let Output { status, stdout, stderr } = tollgate().args(arguments).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code().unwrap(), text(stdout), text(stderr))
}

/// Sends a request over a new connection and returns the whole response.
pub(crate) fn send(address: &str, head: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let length = body.len();
    let headers = format!("host: t\r\nconnection: close\r\ncontent-length: {length}");
    write!(stream, "{head}\r\n{headers}\r\n\r\n{body}").unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    response
}

/// Flags for HTTP on a free port and no other listener.
pub(crate) const HTTP_ONLY: [&str; 8] =
    ["--http", "127.0.0.1:0", "--metrics", "off", "--grpc", "off", "--resp", "off"];

/// A daemon on a free port.
#[derive(Debug)]
pub(crate) struct Daemon {
    child: Child,
    output: BufReader<ChildStdout>,
    log: Option<ChildStderr>,
    /// The output when it was ready.
    pub(crate) greeting: String,
    pub(crate) url: String,
}

impl Daemon {
    pub(crate) fn start<I: IntoIterator<Item: AsRef<OsStr>>>(arguments: I) -> Self {
        Daemon::start_with(|_| {}, arguments)
    }

    /// Like [`Daemon::start`]; `change` configures the process.
    pub(crate) fn start_with<I: IntoIterator<Item: AsRef<OsStr>>>(
        change: impl FnOnce(&mut Command),
        arguments: I,
    ) -> Self {
        let mut command = tollgate();
        command.arg("serve").args(arguments).args(["--http", "127.0.0.1:0"]);
        command.args(["--metrics", "127.0.0.1:0", "--grpc", "off", "--resp", "off"]);
        command.stderr(Stdio::null());
        change(&mut command);
        Daemon::spawn(&mut command)
    }

    /// Starts the daemon with a command that sets all listeners.
    pub(crate) fn spawn(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut greeting = String::new();
        // The last line of the greeting is a curl command.
        while !greeting.lines().last().is_some_and(|line| line.starts_with("  curl -i")) {
            assert!(output.read_line(&mut greeting).unwrap() > 0, "the daemon ended: {greeting}");
        }
        let url = greeting.split_whitespace().find(|word| word.starts_with("http"));
        let url = url.unwrap_or_default().to_owned();
        let log = child.stderr.take();
        Daemon { child, output, log, greeting, url }
    }

    /// The log, if standard error is piped.
    pub(crate) fn log(&mut self) -> Option<ChildStderr> {
        self.log.take()
    }

    /// The URL of the metrics.
    pub(crate) fn metrics_url(&self) -> &str {
        self.greeting.split_whitespace().find(|word| word.ends_with("/metrics")).unwrap()
    }

    pub(crate) fn address(&self) -> &str {
        self.url.strip_prefix("http://").unwrap()
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits for the process to exit. Returns the exit code.
    pub(crate) fn wait(mut self) -> Option<i32> {
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "", "nothing is printed after the greeting");
        self.child.wait().unwrap().code()
    }

    /// Stops the daemon with SIGINT, as in a terminal.
    pub(crate) fn stop(self) {
        self.signal(Signal::INT);
        assert_eq!(self.wait(), Some(0));
    }
}
