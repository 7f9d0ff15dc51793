//! The files of `rows/`, for tests of stores.

use std::path::{Path, PathBuf};
use std::{fs, io};

use super::parse::Rows;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("rows")
}

/// The names of all files below `rows/`, sorted.
///
/// # Errors
/// The folder cannot be read.
pub fn files() -> io::Result<Vec<String>> {
    let mut found = Vec::new();
    find(&folder(), &mut found)?;
    found.sort();
    Ok(found)
}

fn find(below: &Path, found: &mut Vec<String>) -> io::Result<()> {
    for entry in fs::read_dir(below)? {
        let path = entry?.path();
        if path.is_dir() {
            find(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "rows") {
            let name = path.strip_prefix(folder()).unwrap_or(&path);
            found.push(name.display().to_string());
        }
    }
    Ok(())
}

/// Reads and parses a file.
///
/// # Errors
/// The file cannot be read, or a line is invalid.
pub fn read(name: &str) -> io::Result<Rows> {
    let text = fs::read_to_string(folder().join(name))?;
    Rows::parse(name, &text).map_err(io::Error::other)
}
