//! Runs the tool.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use tollgate_testkit::Folder;

use crate::process;

/// The command `replay`.
pub(crate) fn tollgate() -> Command {
    let mut command = process::tollgate();
    command.arg("replay");
    command
}

/// Runs the tool. Returns the exit code, standard output and standard error.
pub(crate) fn run<I: IntoIterator<Item: AsRef<OsStr>>>(arguments: I) -> (i32, String, String) {
    process::output(tollgate().args(arguments), b"")
}

/// Runs the tool on a log. Returns its report.
pub(crate) fn report(log: &Path, arguments: &[&str]) -> Value {
    let log = [log.as_os_str(), OsStr::new("-o"), OsStr::new("json")];
    let arguments = log.into_iter().chain(arguments.iter().map(OsStr::new));
    let (code, output, error) = run(arguments);
    assert_eq!((code, &*error), (0, ""), "{output}");
    serde_json::from_str(&output).unwrap()
}

/// Runs shell commands in a folder with the tool on the path. Returns their output.
pub(crate) fn shell(commands: &str, folder: &Folder) -> String {
    let tool = Path::new(env!("CARGO_BIN_EXE_tollgate")).parent().unwrap();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::iter::once(tool.to_owned()).chain(std::env::split_paths(&path));
    let mut shell = Command::new("bash");
    shell.args(["-e", "-c", commands]).current_dir(folder.path());
    shell.env_remove("TOLLGATE_CONFIG").env("PATH", std::env::join_paths(path).unwrap());
    let (code, output, error) = process::output(&mut shell, b"");
    assert_eq!((code, &*error), (0, ""), "{commands}");
    output
}
