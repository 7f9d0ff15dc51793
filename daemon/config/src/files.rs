//! Reading files of bounded size.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

/// Reads a file, and subtracts its length from the number of bytes that are left; `None` if it is
/// longer. The size in the metadata is not used: a pipe has none.
pub(super) fn read(path: &Path, left: &mut u64) -> Result<Option<Vec<u8>>, String> {
    let unreadable = |error: io::Error| format!("cannot be read: {error}");
    let mut bytes = Vec::new();
    let mut file = File::open(path).map_err(unreadable)?.take(*left + 1);
    file.read_to_end(&mut bytes).map_err(unreadable)?;
    let Some(rest) = file.limit().checked_sub(1) else { return Ok(None) };
    *left = rest;
    Ok(Some(bytes))
}

pub(super) fn utf8(bytes: Vec<u8>) -> Result<String, String> {
    String::from_utf8(bytes)
        .map_err(|error| format!("invalid UTF-8 at byte {}", error.utf8_error().valid_up_to()))
}
