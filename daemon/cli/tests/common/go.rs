//! Test programs in Go.

use std::path::Path;
use std::process::{Command, Stdio};

use tollgate_testkit::Folder;

use crate::process::repository;

/// A compiled program.
#[derive(Debug)]
pub(crate) struct GoProgram(Folder);

impl GoProgram {
    /// Compiles the module in `source`. Without Go or its modules, standard error reports a skipped
    /// test.
    pub(crate) fn compile(source: &str) -> Option<Self> {
        let source = repository(source);
        let is_installed = go(&source, &["version"]).is_ok_and(|output| output.status.success());
        if !(is_installed && go(&source, &["mod", "download"]).unwrap().status.success()) {
            eprintln!(
                "SKIPPED: {}: Go is not installed, or its modules are unreachable",
                source.display()
            );
            return None;
        }
        let folder = Folder::create();
        let program = folder.join("program");
        let built = go(&source, &["build", "-o", program.to_str().unwrap(), "."]).unwrap();
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        Some(GoProgram(folder))
    }

    pub(crate) fn command(&self) -> Command {
        Command::new(self.0.join("program"))
    }
}

fn go(folder: &Path, arguments: &[&str]) -> std::io::Result<std::process::Output> {
    let mut command = Command::new("go");
    command.args(arguments).current_dir(folder).env("GOFLAGS", "-buildvcs=false");
    command.stdin(Stdio::null()).output()
}
