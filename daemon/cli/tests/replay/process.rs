//! Runs the tool.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;

pub(crate) fn tollgate() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate"));
    command.env_remove("TOLLGATE_CONFIG").stdin(Stdio::null()).arg("replay");
    command
}

/// Runs the tool; returns the exit code, standard output and standard error.
pub(crate) fn run<I: IntoIterator<Item: AsRef<OsStr>>>(arguments: I) -> (i32, String, String) {
    let Output { status, stdout, stderr } = tollgate().args(arguments).output().unwrap();
    let text = |x| String::from_utf8(x).unwrap();
    (status.code().unwrap(), text(stdout), text(stderr))
}

/// Runs the tool on a log; returns its report.
pub(crate) fn report(log: &Path, arguments: &[&str]) -> Value {
    let log = [log.as_os_str(), OsStr::new("-o"), OsStr::new("json")];
    let arguments = log.into_iter().chain(arguments.iter().map(OsStr::new));
    let (code, output, complaint) = run(arguments);
    assert_eq!((code, &*complaint), (0, ""), "{output}");
    serde_json::from_str(&output).unwrap()
}

/// Runs shell commands with the tool on the path; returns their output.
pub(crate) fn shell(commands: &str, directory: &Directory) -> String {
    let tool = Path::new(env!("CARGO_BIN_EXE_tollgate")).parent().unwrap();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::iter::once(tool.to_owned()).chain(std::env::split_paths(&path));
    let mut shell = Command::new("bash");
    shell.args(["-e", "-c", commands]).current_dir(directory.path("")).stdin(Stdio::null());
    shell.env_remove("TOLLGATE_CONFIG").env("PATH", std::env::join_paths(path).unwrap());
    let Output { status, stdout, stderr } = shell.output().unwrap();
    let text = |x| String::from_utf8(x).unwrap();
    assert!(status.success(), "{commands}\n{}", text(stderr));
    assert_eq!(text(stderr), "", "{commands}");
    text(stdout)
}

/// A temporary directory, removed when dropped.
#[derive(Debug)]
pub(crate) struct Directory(PathBuf);

impl Directory {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("tollgate-replay-{}-{number}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        let _ = std::fs::remove_dir_all(&directory);
        std::fs::create_dir(&directory).unwrap();
        Directory(directory)
    }

    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, content).unwrap();
        path
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
