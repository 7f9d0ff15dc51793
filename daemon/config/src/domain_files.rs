//! Configuration files of envoyproxy/ratelimit and directories of such files.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use tollgate_descriptors::Source;

use super::files;

/// The maximum number of files in a directory.
const MAX_FILES: usize = 1_000;
/// The maximum total size of the files of a path in bytes.
const MAX_BYTES: u64 = 16 * 1024 * 1024;
/// The maximum number of entries in a directory.
const MAX_ENTRIES: usize = 10_000;

/// A file or directory cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DomainFileError {
    pub(super) file: PathBuf,
    pub(super) reason: String,
}

/// The configuration files of a directory, in the order in which they are read; `None` if the path
/// is not a directory. Their names end in `.yaml` or `.yml`. Names that begin with a dot are
/// ignored, such as `..data` in a mounted Kubernetes ConfigMap.
///
/// # Errors
/// The path cannot be read, or the directory has too many entries.
pub fn list_directory(path: &Path) -> io::Result<Option<Vec<PathBuf>>> {
    Ok(scan(path)?.map(|directory| directory.files))
}

/// The entries of a directory.
#[derive(Debug, Default)]
struct Directory {
    /// The configuration files.
    files: Vec<PathBuf>,
    /// The files whose names end otherwise, and do not begin with a dot.
    skipped: Vec<PathBuf>,
}

fn scan(path: &Path) -> io::Result<Option<Directory>> {
    if !fs::metadata(path)?.is_dir() {
        return Ok(None);
    }
    let mut directory = Directory::default();
    for (at, entry) in fs::read_dir(path)?.enumerate() {
        if at == MAX_ENTRIES {
            let reason =
                format!("the directory has more than {MAX_ENTRIES} entries; use another directory");
            return Err(io::Error::other(reason));
        }
        let file = entry?.path();
        if is_hidden(&file) || !is_file_or_dangling_link(&file) {
            continue;
        }
        let list =
            if has_config_name(&file) { &mut directory.files } else { &mut directory.skipped };
        list.push(file);
    }
    directory.files.sort_unstable();
    directory.skipped.sort_unstable();
    Ok(Some(directory))
}

/// The most skipped files of a directory that a warning names.
const MAX_NAMED: usize = 5;

/// The warnings about directories: files that are not read because of their names, and directories
/// without any configuration file.
#[must_use]
pub fn domain_file_warnings(paths: &[PathBuf]) -> Vec<String> {
    let mut warnings = Vec::new();
    for path in paths {
        // Reading a path that cannot be listed reports the error.
        let Ok(Some(Directory { files, skipped })) = scan(path) else { continue };
        let named = skipped.iter().take(MAX_NAMED).map(|file| {
            let file = file.display();
            format!("{file} is skipped: its name does not end in .yaml or .yml; rename it")
        });
        warnings.extend(named);
        if let Some(more @ 1..) = skipped.len().checked_sub(MAX_NAMED) {
            warnings.push(format!("{more} more files in {} are skipped", path.display()));
        }
        if files.is_empty() {
            let path = path.display();
            warnings
                .push(format!("no limits: {path} has no file whose name ends in .yaml or .yml"));
        }
    }
    warnings
}

/// Whether `path` is a directory, or a file of envoyproxy/ratelimit: only those have a line that
/// begins with `domain:`.
#[must_use]
pub fn has_domains(path: &Path) -> bool {
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => true,
        Ok(_) => fs::read_to_string(path)
            .is_ok_and(|text| text.lines().any(|line| line.starts_with("domain:"))),
        Err(_) => false,
    }
}

fn is_hidden(file: &Path) -> bool {
    file.file_name().is_none_or(|name| name.as_encoded_bytes().starts_with(b"."))
}

/// Whether a path is a directory without configuration files.
#[must_use]
pub fn has_no_domain_files(path: &Path) -> bool {
    list_directory(path).is_ok_and(|files| files.is_some_and(|files| files.is_empty()))
}

fn has_config_name(file: &Path) -> bool {
    let Some(name) = file.file_name().map(|name| name.as_encoded_bytes()) else { return false };
    name.ends_with(b".yaml") || name.ends_with(b".yml")
}

/// Whether an entry is a file, or a dangling link, which is then reported. Opening a pipe might
/// block forever.
fn is_file_or_dangling_link(file: &Path) -> bool {
    fs::metadata(file).map_or(true, |x| x.is_file())
}

/// The paths to watch for changes: each path, and the configuration files in it if it is a
/// directory.
pub fn watched_paths(paths: &[PathBuf]) -> impl Iterator<Item = PathBuf> {
    paths.iter().flat_map(|path| {
        // A path that cannot be listed is watched itself; reading it reports the error.
        let files = list_directory(path).ok().flatten().unwrap_or_default();
        std::iter::once(path.clone()).chain(files)
    })
}

/// Reads the configuration files of a path.
pub(super) fn read(path: &Path) -> Result<Vec<Source>, DomainFileError> {
    let unusable = |file: &Path, reason: String| DomainFileError { file: file.to_owned(), reason };
    let listed =
        list_directory(path).map_err(|error| unusable(path, format!("cannot be read: {error}")))?;
    let files = listed.unwrap_or_else(|| vec![path.to_owned()]);
    if files.is_empty() {
        let reason = "no file with a name that ends in .yaml or .yml; add one";
        return Err(unusable(path, reason.to_owned()));
    }
    if files.len() > MAX_FILES {
        let reason =
            format!("the directory has {} files; at most {MAX_FILES} are supported", files.len());
        return Err(unusable(path, reason));
    }
    let mut left = MAX_BYTES;
    let source = |file: &PathBuf| {
        let text = text(file, &mut left).map_err(|reason| unusable(file, reason))?;
        Ok(Source::new(file.display().to_string(), text))
    };
    files.iter().map(source).collect()
}

/// Reads a file, and subtracts its length from the number of bytes that are left.
fn text(file: &Path, left: &mut u64) -> Result<String, String> {
    let bytes = files::read(file, left)?.ok_or_else(|| {
        format!("the files are longer than the maximum of {MAX_BYTES} bytes in total")
    })?;
    if bytes.is_empty() {
        // An editor may be rewriting the file in place; the previous contents must stay in effect.
        return Err("the file is empty; define a domain, or remove the file".to_owned());
    }
    files::utf8(bytes)
}
