//! Processes that end with the test that started them.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A server, started by a shell that kills it when the pipe to the test closes. The kernel closes
/// the pipe however the test ends, and this needs no unsafe code.
#[derive(Debug)]
pub(crate) struct ChildGuard {
    shell: Child,
    server: u32,
}

impl ChildGuard {
    /// Starts `command` with its output appended to `log`.
    pub(crate) fn start(command: &[&OsStr], log: &Path, folder: &Path) -> Self {
        let mut shell = Command::new("sh")
            .args(["-c", include_str!("child_guard.sh"), "child_guard"])
            .args([log, folder])
            .args(command)
            // Signals of the terminal must not reach the shell; it waits for the pipe.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("sh starts");
        let mut line = String::new();
        if let Some(output) = shell.stdout.take() {
            BufReader::new(output).read_line(&mut line).expect("sh prints the process id");
        }
        let server = line.trim().parse().expect("sh prints the process id");
        Self { shell, server }
    }

    /// The process id of the server.
    pub(crate) fn pid(&self) -> u32 {
        self.server
    }

    pub(crate) fn is_running(&mut self) -> bool {
        matches!(self.shell.try_wait(), Ok(None))
    }

    /// Sends a signal by its name, such as `STOP`.
    pub(crate) fn signal(&mut self, name: &str) {
        let kill = format!("kill -s {name} {}", self.server);
        let sent = Command::new("sh").args(["-c", &kill]).status();
        assert!(sent.is_ok_and(|status| status.success()), "cannot send {name}: no such process");
    }
}

impl Drop for ChildGuard {
    fn drop(&mut self) {
        if let Some(mut pipe) = self.shell.stdin.take() {
            // Fails if the server, and with it the shell, has ended.
            let _ = pipe.write_all(b"kill\n");
        }
        let _ = self.shell.wait();
    }
}
