//! Files of tokens.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The longest token, in bytes, as for tokens in the configuration itself.
const MAX_BYTES: usize = 1_024;

/// The content of a token file.
pub(super) struct Secret {
    pub(super) text: String,
    /// A problem of a file that can be used.
    pub(super) warning: Option<String>,
}

/// Reads a token, without its line ending.
///
/// # Errors
/// The file cannot be used; the message says how to fix it.
pub(super) fn read(path: &Path) -> Result<Secret, String> {
    let shown = path.display();
    let unreadable = |error: io::Error| format!("{shown} cannot be read: {error}");
    let mut file = File::open(path).map_err(unreadable)?;
    let is_world_readable =
        file.metadata().map(|metadata| is_world_readable(&metadata)).map_err(unreadable)?;
    let mut bytes = Vec::new();
    // A line ending, and one byte more to detect a longer token.
    const MAX_READ: u64 = 1_024 + 3;
    file.by_ref().take(MAX_READ).read_to_end(&mut bytes).map_err(unreadable)?;
    let line = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.is_empty() {
        return Err(format!(
            "{shown} is empty; write a token, such as the output of openssl rand -hex 32"
        ));
    }
    if line.len() > MAX_BYTES {
        return Err(format!("{shown} is longer than {MAX_BYTES} bytes, the maximum for a token"));
    }
    if let Some(at) = line.iter().position(|byte| !byte.is_ascii_graphic()) {
        let rule = "a token is one line of ASCII without spaces";
        return Err(format!("{shown} has an invalid byte at position {}; {rule}", at + 1));
    }
    let warning = is_world_readable
        .then(|| format!("{shown} is readable by every user; run chmod o-rwx {shown}"));
    Ok(Secret { text: String::from_utf8_lossy(line).into_owned(), warning })
}

#[cfg(unix)]
fn is_world_readable(metadata: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt;
    metadata.permissions().mode() & 0o007 != 0
}

#[cfg(not(unix))]
fn is_world_readable(_: &std::fs::Metadata) -> bool {
    false
}
