//! The crates that are published: all members of the workspace without `publish = false`.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

/// A published crate.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Published {
    pub(crate) name: String,
    /// The folder, relative to the workspace.
    pub(crate) folder: String,
    pub(crate) features: Vec<String>,
}

impl Published {
    /// Whether it is a library with a stable interface. The crates of the daemon and of the tools
    /// are published only because the binary needs them.
    pub(crate) fn is_library(&self) -> bool {
        self.folder.starts_with("crates/")
    }
}

/// The published crates in the order of the workspace's manifest, in which each crate comes after
/// those that it needs.
pub(crate) fn published(root: &Path) -> Result<Vec<Published>> {
    let manifest = read(root, "Cargo.toml")?;
    let mut crates = Vec::new();
    for folder in members(&manifest) {
        crates.extend(parse(folder, &read(root, &format!("{folder}/Cargo.toml"))?)?);
    }
    ensure!(!crates.is_empty(), "Cargo.toml has no members");
    Ok(crates)
}

fn read(root: &Path, name: &str) -> Result<String> {
    fs::read_to_string(root.join(name)).with_context(|| name.to_owned())
}

/// The value of a text field in the section `[workspace.package]`.
pub(crate) fn workspace_field(root: &Path, field: &str) -> Result<String> {
    let manifest = read(root, "Cargo.toml")?;
    let value = section(&manifest, "workspace.package").find_map(|line| text_field(line, field));
    value.with_context(|| format!("Cargo.toml has no {field} in [workspace.package]"))
}

fn members(manifest: &str) -> impl Iterator<Item = &str> {
    let lines = section(manifest, "workspace").skip_while(|line| *line != "members = [").skip(1);
    lines.take_while(|line| *line != "]").map(|line| line.trim_matches([' ', '"', ',']))
}

/// The crate of a manifest, or nothing if it is not published.
fn parse(folder: &str, manifest: &str) -> Result<Option<Published>> {
    if section(manifest, "package").any(|line| line == "publish = false") {
        return Ok(None);
    }
    let name = section(manifest, "package").find_map(|line| text_field(line, "name"));
    let name = name.with_context(|| format!("{folder}/Cargo.toml has no name"))?;
    let features = section(manifest, "features").filter(|line| !line.starts_with('#'));
    let features = features.filter_map(|line| line.split_once(" = ")).map(|(name, _)| name);
    let features = features.map(String::from).collect();
    Ok(Some(Published { name, folder: folder.to_owned(), features }))
}

/// The lines of a section of a manifest.
fn section<'a>(manifest: &'a str, name: &str) -> impl Iterator<Item = &'a str> {
    let head = format!("[{name}]");
    let lines = manifest.lines().skip_while(move |line| *line != head).skip(1);
    lines.take_while(|line| !line.starts_with('['))
}

/// The value of a line `field = "value"`.
fn text_field(line: &str, field: &str) -> Option<String> {
    let value = line.strip_prefix(field)?.strip_prefix(" = \"")?.strip_suffix('"')?;
    Some(value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repository;

    #[test]
    fn manifests_are_read() {
        let manifest = "[package]\nname = \"a\"\nversion = \"1.0.0\"\n\n[features]\n# Text.\n\
                        default = [\"b\"]\nb = []\n\n[dependencies]\nc = \"1\"\n";
        let expected = Published {
            name: "a".to_owned(),
            folder: "crates/a".to_owned(),
            features: ["default", "b"].map(String::from).into(),
        };
        assert_eq!(parse("crates/a", manifest).unwrap(), Some(expected));
        let hidden = manifest.replace("version", "publish = false\nversion");
        assert_eq!(parse("crates/a", &hidden).unwrap(), None);
        assert!(parse("crates/a", "[package]\n").is_err());
    }

    #[test]
    fn crates_that_the_binary_needs_are_published_and_tests_are_not() {
        let root = repository::root();
        let crates = published(&root).unwrap();
        let names: Vec<_> = crates.iter().map(|published| &*published.folder).collect();
        for folder in ["crates/core", "crates/tollgate", "daemon/server", "daemon/cli"] {
            assert!(names.contains(&folder), "{folder} is not in {names:?}");
        }
        for folder in ["testing/testkit", "bench", "xtask"] {
            assert!(!names.contains(&folder), "{folder} is in {names:?}");
        }
        assert_eq!(workspace_field(&root, "edition").unwrap(), "2024");
    }
}
