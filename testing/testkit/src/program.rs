//! The binary of Redis or Valkey.

use std::path::PathBuf;
use std::{env, fmt};

/// Why there is no server to start.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Missing {
    /// `$REDIS_SERVER` names what is not there.
    Named(PathBuf),
    NotOnPath,
}

impl fmt::Display for Missing {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named(path) => {
                write!(formatter, "REDIS_SERVER names {}, which is no file", path.display())
            }
            Self::NotOnPath => formatter.write_str(
                "neither redis-server nor valkey-server is on the path; on Debian or Ubuntu: \
                 sudo apt-get install redis-server; or name one: export REDIS_SERVER=PATH",
            ),
        }
    }
}

pub(crate) fn find() -> Result<PathBuf, Missing> {
    let named = env::var_os("REDIS_SERVER").filter(|name| !name.is_empty());
    let folders: Vec<PathBuf> =
        env::var_os("PATH").map(|path| env::split_paths(&path).collect()).unwrap_or_default();
    choose(named.map(PathBuf::from), &folders)
}

fn choose(named: Option<PathBuf>, folders: &[PathBuf]) -> Result<PathBuf, Missing> {
    let on_path = |program: &PathBuf| {
        folders.iter().map(|folder| folder.join(program)).find(|path| path.is_file())
    };
    match named {
        Some(named) if named.components().count() > 1 => {
            if named.is_file() {
                Ok(named)
            } else {
                Err(Missing::Named(named))
            }
        }
        Some(named) => on_path(&named).ok_or(Missing::Named(named)),
        None => ["redis-server", "valkey-server"]
            .iter()
            .find_map(|program| on_path(&PathBuf::from(program)))
            .ok_or(Missing::NotOnPath),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::folder::Folder;

    #[test]
    fn a_named_server_is_preferred_and_a_missing_one_says_what_to_do() {
        let folder = Folder::create();
        let valkey = folder.path().join("valkey-server");
        fs::write(&valkey, "").unwrap();
        let folders = [PathBuf::from("/nowhere"), folder.path().to_owned()];
        let check = |named: Option<&str>, folders: &[PathBuf], expected: Result<&PathBuf, &str>| {
            let found = choose(named.map(PathBuf::from), folders);
            let found = found.map_err(|missing| missing.to_string());
            match expected {
                Ok(path) => assert_eq!(found.as_ref(), Ok(path)),
                Err(words) => assert!(found.unwrap_err().contains(words), "{words}"),
            }
        };
        check(None, &folders, Ok(&valkey));
        check(Some("valkey-server"), &folders, Ok(&valkey));
        check(valkey.to_str(), &[], Ok(&valkey));
        check(None, &[], Err("sudo apt-get install redis-server"));
        check(Some("redis-server"), &folders, Err("REDIS_SERVER names redis-server"));
        check(Some("/nowhere/redis"), &folders, Err("REDIS_SERVER names /nowhere/redis"));
    }
}
