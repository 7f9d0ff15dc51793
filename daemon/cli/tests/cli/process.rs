//! The tool, run.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, ChildStderr, ChildStdout, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::process::{Pid, Signal, kill_process};

pub(crate) fn tollgate() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate"));
    command.env_remove("TOLLGATE_URL").env_remove("TOLLGATE_CONFIG").stdin(Stdio::null());
    command
}

/// Runs the tool to its end: exit code, standard output, standard error.
pub(crate) fn run<I: IntoIterator<Item: AsRef<OsStr>>>(arguments: I) -> (i32, String, String) {
    let Output { status, stdout, stderr } = tollgate().args(arguments).output().unwrap();
    let text = |x| String::from_utf8(x).unwrap();
    (status.code().unwrap(), text(stdout), text(stderr))
}

/// A directory of this test's own.
pub(crate) fn directory() -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = format!("tollgate-cli-{}-{number}", std::process::id());
    let directory = std::env::temp_dir().join(name);
    let _ = std::fs::remove_dir_all(&directory);
    std::fs::create_dir(&directory).unwrap();
    directory
}

/// A daemon on a free port.
#[derive(Debug)]
pub(crate) struct Daemon {
    child: Child,
    output: BufReader<ChildStdout>,
    log: Option<ChildStderr>,
    /// What it said when it was ready.
    pub(crate) greeting: String,
    pub(crate) url: String,
}

impl Daemon {
    pub(crate) fn start<I: IntoIterator<Item: AsRef<OsStr>>>(arguments: I) -> Self {
        Daemon::start_with(|_| {}, arguments)
    }

    /// As [`Daemon::start`], with something else about its process.
    pub(crate) fn start_with<I: IntoIterator<Item: AsRef<OsStr>>>(
        change: impl FnOnce(&mut Command),
        arguments: I,
    ) -> Self {
        let mut command = tollgate();
        command.arg("serve").args(arguments);
        command.args([
            "--http",
            "127.0.0.1:0",
            "--metrics",
            "127.0.0.1:0",
            "--grpc",
            "off",
            "--resp",
            "off",
        ]);
        command.stderr(Stdio::null());
        change(&mut command);
        Daemon::spawn(&mut command)
    }

    /// One that listens where it is told.
    pub(crate) fn spawn(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut greeting = String::new();
        // The last line of the greeting asks once more.
        while !greeting.lines().last().is_some_and(|line| line.starts_with("  curl -i")) {
            assert!(output.read_line(&mut greeting).unwrap() > 0, "it ended: {greeting}");
        }
        let url = greeting.split_whitespace().find(|word| word.starts_with("http"));
        let url = url.unwrap_or_default().to_owned();
        let log = child.stderr.take();
        Daemon { child, output, log, greeting, url }
    }

    /// Its log, if that was piped.
    pub(crate) fn log(&mut self) -> Option<ChildStderr> {
        self.log.take()
    }

    /// Where its metrics are.
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

    /// Waits for its end; its exit code.
    pub(crate) fn ended(mut self) -> Option<i32> {
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "", "nothing is printed after the greeting");
        self.child.wait().unwrap().code()
    }

    /// Stops it as who sits at its terminal does.
    pub(crate) fn stop(self) {
        self.signal(Signal::INT);
        assert_eq!(self.ended(), Some(0));
    }
}
