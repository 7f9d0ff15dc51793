//! Files of envoyproxy/ratelimit, and directories of them: which there are, and what they say.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use tollgate_descriptors::Source;

/// The most files of one path.
const MAX_FILES: usize = 1_000;
/// The most bytes of all files of one path.
const MAX_BYTES: u64 = 16 * 1024 * 1024;
/// The most entries of a directory that are looked at.
const MAX_ENTRIES: usize = 10_000;

/// Why the files of a path cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unusable {
    pub(super) file: PathBuf,
    pub(super) why: String,
}

/// The files of a directory that are read, in the order in which they are; nothing if the path is
/// none. Their names end in `.yaml` or `.yml`. Those that begin with a dot are somebody's
/// bookkeeping, such as `..data` where Kubernetes mounts a configuration.
///
/// # Errors
/// It cannot be list_directory, or has too many entries.
pub fn list_directory(path: &Path) -> io::Result<Option<Vec<PathBuf>>> {
    if !fs::metadata(path)?.is_dir() {
        return Ok(None);
    }
    let mut files = Vec::new();
    for (at, entry) in fs::read_dir(path)?.enumerate() {
        if at == MAX_ENTRIES {
            let why = format!("it has more than {MAX_ENTRIES} entries; name another directory");
            return Err(io::Error::other(why));
        }
        let file = entry?.path();
        if is_named_so(&file) && is_read(&file) {
            files.push(file);
        }
    }
    files.sort_unstable();
    Ok(Some(files))
}

/// Whether a path of `envoy.config` is a directory that says nothing: none of its files is read.
#[must_use]
pub fn has_no_domain_files(path: &Path) -> bool {
    list_directory(path).is_ok_and(|x| x.is_some_and(|files| files.is_empty()))
}

fn is_named_so(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().as_encoded_bytes();
    !name.starts_with(b".") && (name.ends_with(b".yaml") || name.ends_with(b".yml"))
}

/// Whether it is a file, or a link that leads nowhere, which is to be complained of. To open a pipe
/// might take for ever.
fn is_read(file: &Path) -> bool {
    fs::metadata(file).map_or(true, |x| x.is_file())
}

/// All that must stay as it is for the files of these paths to say what they said: each path, and
/// what is in it if it is a directory.
pub fn watched_paths(paths: &[PathBuf]) -> impl Iterator<Item = PathBuf> {
    paths.iter().flat_map(|path| {
        let files = list_directory(path).ok().flatten().unwrap_or_default();
        std::iter::once(path.clone()).chain(files)
    })
}

/// What the files of a path say.
pub(super) fn read(path: &Path) -> Result<Vec<Source>, Unusable> {
    let unusable = |file: &Path, why: String| Unusable { file: file.to_owned(), why };
    let listed = list_directory(path)
        .map_err(|error| unusable(path, format!("it cannot be read: {error}")))?;
    let files = listed.unwrap_or_else(|| vec![path.to_owned()]);
    if files.is_empty() {
        let why = "there is no file in it whose name ends in .yaml or .yml; write one";
        return Err(unusable(path, why.to_owned()));
    }
    if files.len() > MAX_FILES {
        let why = format!("it has {} files, and {MAX_FILES} at most are read", files.len());
        return Err(unusable(path, why));
    }
    let mut left = MAX_BYTES;
    let mut read = |file: &PathBuf| {
        let text = text(file, &mut left).map_err(|why| unusable(file, why))?;
        Ok(Source::new(file.display().to_string(), text))
    };
    files.iter().map(&mut read).collect()
}

fn text(file: &Path, left: &mut u64) -> Result<String, String> {
    let unreadable = |error: io::Error| format!("it cannot be read: {error}");
    let mut bytes = Vec::new();
    let opened = File::open(file).map_err(unreadable)?;
    opened.take(*left + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.is_empty() {
        // As while somebody writes it in place: that is no reason to forget what it said.
        return Err("it is empty; write a domain, or remove the file".to_owned());
    }
    let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    *left = left.checked_sub(length).ok_or_else(|| {
        format!("with it there are more than the {MAX_BYTES} bytes that are read")
    })?;
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        format!("it is not UTF-8 from byte {at} on")
    })
}
