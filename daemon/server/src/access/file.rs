//! The file that holds a token.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The most bytes of a token, as the configuration has it for those written there.
const MAX_BYTES: usize = 1_024;

/// What was read.
pub(super) struct Secret {
    pub(super) text: String,
    /// What should be mended about a file that can be used nevertheless.
    pub(super) warning: Option<String>,
}

/// Reads a token, less the end of its line.
///
/// # Errors
/// Why the file cannot be used, and what to do about it.
pub(super) fn read(path: &Path) -> Result<Secret, String> {
    let shown = path.display();
    let unreadable = |error: io::Error| format!("{shown} cannot be read: {error}");
    let mut file = File::open(path).map_err(unreadable)?;
    let is_open =
        file.metadata().map(|metadata| is_for_everybody(&metadata)).map_err(unreadable)?;
    let mut bytes = Vec::new();
    // The end of a line, and one byte that is too many.
    let most = u64::try_from(MAX_BYTES + 3).unwrap_or(u64::MAX);
    file.by_ref().take(most).read_to_end(&mut bytes).map_err(unreadable)?;
    let line = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.is_empty() {
        return Err(format!("{shown} is empty; write a token, such as openssl rand -hex 32 draws"));
    }
    if line.len() > MAX_BYTES {
        return Err(format!("{shown} has more than the {MAX_BYTES} bytes that a token may have"));
    }
    if let Some(at) = line.iter().position(|line| !line.is_ascii_graphic()) {
        let why = "a token is one line of ASCII without spaces";
        return Err(format!("{shown} has something else at byte {}; {why}", at + 1));
    }
    let warning = is_open.then(|| {
        format!("{shown} can be read by every user of this machine; do chmod o-rwx {shown}")
    });
    Ok(Secret { text: String::from_utf8_lossy(line).into_owned(), warning })
}

#[cfg(unix)]
fn is_for_everybody(metadata: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt;
    metadata.permissions().mode() & 0o007 != 0
}

#[cfg(not(unix))]
fn is_for_everybody(_: &std::fs::Metadata) -> bool {
    false
}
