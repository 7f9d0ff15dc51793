//! The repository's folder and files.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::process;

/// The folder of the workspace.
pub(crate) fn root() -> PathBuf {
    // The run-time value comes first: a copy of the tree may share the target folder of another.
    let here = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    here.parent().map_or_else(|| here.clone(), Path::to_path_buf)
}

/// The files that git tracks or would add, relative to `root`, separated by `/`.
pub(crate) fn files(root: &Path) -> Result<Vec<String>> {
    let mut list = Command::new("git");
    list.current_dir(root);
    list.args(["ls-files", "--cached", "--others", "--exclude-standard", "-z"]);
    let names = process::output(list)?;
    let mut files: Vec<String> = names
        .split_terminator('\0')
        .filter(|name| root.join(name).is_file())
        .map(String::from)
        .collect();
    files.sort();
    files.dedup();
    Ok(files)
}
