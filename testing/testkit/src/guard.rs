//! Processes that never outlive the test which started them.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A server behind a shell that kills it when the pipe between us closes. The kernel closes it
/// however the process of the test ends, and nothing unsafe is needed.
#[derive(Debug)]
pub(crate) struct Guard {
    shell: Child,
    server: u32,
}

impl Guard {
    /// Starts `command` with its output appended to `log`.
    pub(crate) fn start(command: &[&OsStr], log: &Path, folder: &Path) -> Self {
        let mut shell = Command::new("sh")
            .args(["-c", include_str!("guard.sh"), "guard"])
            .args([log, folder])
            .args(command)
            // Not reached by what the terminal sends to the test: the pipe tells it all.
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

    pub(crate) fn server(&self) -> u32 {
        self.server
    }

    pub(crate) fn is_running(&mut self) -> bool {
        matches!(self.shell.try_wait(), Ok(None))
    }

    /// Sends a signal, by the name that `kill` knows it by.
    pub(crate) fn signal(&mut self, name: &str) {
        let kill = format!("kill -s {name} {}", self.server);
        let sent = Command::new("sh").args(["-c", &kill]).status();
        assert!(sent.is_ok_and(|status| status.success()), "cannot send {name}: no such process");
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(mut orders) = self.shell.stdin.take() {
            // It fails if the server has ended by itself, and the shell with it.
            let _ = orders.write_all(b"kill\n");
        }
        let _ = self.shell.wait();
    }
}
