//! Lookup of programs on this machine.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::{env, fs};

/// The Redis or Valkey binary; an error with the command to install it, if it is missing.
pub(crate) fn redis_server() -> Result<PathBuf, String> {
    let named = env::var_os("REDIS_SERVER").filter(|name| !name.is_empty());
    choose(named.map(PathBuf::from), &path_folders())
}

fn choose(named: Option<PathBuf>, folders: &[PathBuf]) -> Result<PathBuf, String> {
    let Some(named) = named else {
        let mut programs = ["redis-server", "valkey-server"].iter();
        return programs.find_map(|program| find_in(folders, program.as_ref())).ok_or_else(|| {
            "neither redis-server nor valkey-server is on the path; on Debian or Ubuntu: \
             sudo apt-get install redis-server; or: export REDIS_SERVER=PATH"
                .to_owned()
        });
    };
    let is_path = named.components().count() > 1;
    let found = if is_path { Some(named.clone()) } else { find_in(folders, &named) };
    found
        .filter(|path| path.is_file())
        .ok_or_else(|| format!("REDIS_SERVER is {}, which is not a file", named.display()))
}

/// The file of a program on the path.
pub(crate) fn find_on_path(program: &str) -> Option<PathBuf> {
    find_in(&path_folders(), program.as_ref())
}

fn path_folders() -> Vec<PathBuf> {
    // An unset PATH has no folders.
    env::var_os("PATH").map(|path| env::split_paths(&path).collect()).unwrap_or_default()
}

fn find_in(folders: &[PathBuf], program: &Path) -> Option<PathBuf> {
    folders.iter().map(|folder| folder.join(program)).find(|path| path.is_file())
}

/// The workspace's folder. Node.js accepts no `..` in module paths, hence canonical.
pub(crate) fn workspace() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    fs::canonicalize(&root).unwrap_or_else(|error| panic!("{}: {error}", root.display()))
}

/// Reports on standard error that tests of `program` are skipped, even if the harness captures
/// output.
#[track_caller]
pub(crate) fn report_missing(program: &str, remedy: &str, is_packaged: bool) {
    let missing = format!("{program} is not installed; {remedy}");
    assert!(!(is_packaged && env::var_os("CI").is_some()), "{missing}");
    report_skipped(&missing);
}

/// Reports on standard error that a test is skipped, even if the harness captures output.
pub(crate) fn report_skipped(reason: &str) {
    // Standard error may be closed.
    let _ = writeln!(io::stderr(), "SKIPPED: {reason}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::folder::Folder;

    #[test]
    fn named_server_is_preferred_and_missing_server_names_the_remedy() {
        let folder = Folder::create();
        let valkey = folder.path().join("valkey-server");
        fs::write(&valkey, "").unwrap();
        let folders = [PathBuf::from("/nowhere"), folder.path().to_owned()];
        let check = |named: Option<&str>, folders: &[PathBuf], expected: Result<&PathBuf, &str>| {
            let found = choose(named.map(PathBuf::from), folders);
            match expected {
                Ok(path) => assert_eq!(found.as_ref(), Ok(path)),
                Err(message) => assert!(found.unwrap_err().contains(message), "{message}"),
            }
        };
        check(None, &folders, Ok(&valkey));
        check(Some("valkey-server"), &folders, Ok(&valkey));
        check(valkey.to_str(), &[], Ok(&valkey));
        check(None, &[], Err("sudo apt-get install redis-server"));
        check(Some("redis-server"), &folders, Err("REDIS_SERVER is redis-server"));
        check(Some("/nowhere/redis"), &folders, Err("REDIS_SERVER is /nowhere/redis"));
    }
}
