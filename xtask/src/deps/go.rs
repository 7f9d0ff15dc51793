//! Programs that compile from their Go modules, which have no Debian package.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use super::programs;
use crate::process;

/// A program in a Go module that needs no replacement of another module.
#[derive(Debug)]
pub(crate) struct GoProgram {
    pub(crate) name: &'static str,
    /// The package of the program.
    pub(crate) package: &'static str,
    pub(crate) version: &'static str,
}

/// Checks the workflows of GitHub.
pub(crate) const ACTIONLINT: GoProgram = GoProgram {
    name: "actionlint",
    package: "github.com/rhysd/actionlint/cmd/actionlint",
    version: "v1.7.12",
};

impl GoProgram {
    /// Where it is, if it is installed.
    pub(crate) fn path(&self, root: &Path) -> PathBuf {
        // The name contains the version, so that a new version is installed beside the old one.
        let folder = format!("{}@{}", self.name, self.version);
        root.join("target/tools").join(folder).join(self.name)
    }

    /// Compiles it into `target/tools` unless it is there; returns its path.
    pub(crate) fn install(&self, root: &Path) -> Result<PathBuf> {
        let path = self.path(root);
        if !path.is_file() {
            println!("compiling {}", self.name);
            install(root, &path, &format!("{}@{}", self.package, self.version))?;
        }
        Ok(path)
    }
}

/// Compiles a package that needs no replacement of a module, and moves the program to `path`.
pub(super) fn install(root: &Path, path: &Path, package: &str) -> Result<()> {
    programs(&["go"])?;
    let folder = path.with_extension("install");
    let mut install = go(root, &["install", package]);
    install.env("GOBIN", &folder);
    process::run(install)?;
    // The folder contains one program, named after its package.
    for program in fs::read_dir(&folder)? {
        fs::rename(program?.path(), path)?;
    }
    Ok(fs::remove_dir(folder)?)
}

/// `go` in `folder`.
pub(super) fn go(folder: &Path, arguments: &[&str]) -> Command {
    let mut go = Command::new("go");
    // go.mod and go.sum are completed with the modules of the program's go.mod.
    go.args(arguments).current_dir(folder).env("GOFLAGS", "-mod=mod");
    go
}

/// The folder of a module in Go's cache, which is downloaded if necessary.
pub(super) fn module_folder(folder: &Path, module: &str) -> Result<PathBuf> {
    process::run(go(folder, &["mod", "download", module]))?;
    let listed = process::output(go(folder, &["list", "-m", "-f", "{{.Dir}}", module]))?;
    Ok(PathBuf::from(listed.trim()))
}

/// Copies the files of a folder, without its folders.
pub(super) fn copy_files(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for file in fs::read_dir(from)? {
        let file = file?;
        if file.file_type()?.is_file() {
            // Not `fs::copy`: files in Go's cache are read-only.
            fs::write(to.join(file.file_name()), fs::read(file.path())?)?;
        }
    }
    Ok(())
}
