//! Names that mean something on one machine only: absolute paths.

use super::source::{File, Tree};
use super::{Finding, Rule};

pub(super) const RULE: Rule = Rule { name: "machines", find };

const FOLDERS: &[&str] = &["/root", "/home", "/tmp", "/Users"];
/// Files that may say such things.
const ROOMS: &[(&str, &str)] = &[("xtask/src/tidy/machines.rs", "it is the list")];

fn find(tree: &Tree) -> Vec<Finding> {
    let is_room = |file: &&File| ROOMS.iter().any(|(room, _)| file.path == *room);
    tree.files.iter().filter(|file| !is_room(file)).flat_map(mentions).collect()
}

fn mentions(file: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut offset = 0;
    for (at, line) in file.text.lines().enumerate() {
        let is_test = file.is_test(offset);
        offset += line.len() + 1;
        let folder = FOLDERS.iter().find(|folder| !is_test && names_folder(line, folder));
        if let Some(name) = folder {
            let message = format!("`{name}` means something on one machine only");
            findings.push(Finding::new(&file.path, at + 1, message));
        }
    }
    findings
}

/// Whether `line` holds the absolute path `folder`, or one below it. `target/work` and `a/b/worker`
/// are none.
fn names_folder(line: &str, folder: &str) -> bool {
    line.match_indices(folder).any(|(at, _)| {
        let before = line.get(..at).and_then(|before| before.chars().next_back());
        let after = line.get(at + folder.len()..).and_then(|after| after.chars().next());
        let begins =
            before.is_none_or(|letter| !letter.is_alphanumeric() && !"_-./:*}".contains(letter));
        let ends = after.is_none_or(|letter| !letter.is_alphanumeric() && !"_-.".contains(letter));
        begins && ends
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machine_names_are_found() {
        let check = |path: &str, text: &str, found: usize| {
            assert_eq!(find(&Tree::of(&[(path, text)])).len(), found, "{path}: {text}");
        };
        check("README.md", "see /home/somebody/x and /tmp/y", 1);
        check("README.md", "under `/root`", 1);
        check("README.md", "in target/tmp/x, and/or /worker, https://example.com/work/, /tmpfs", 0);
        check("crates/a/tests/b.rs", "\n\"/tmp/x\"", 0);
        check("crates/a/src/b.rs", "fn f() { \"/tmp/x\" }", 1);
        check("crates/a/src/b.rs", "#[cfg(test)]\nmod tests {\n\"/tmp/x\"\n}", 0);
    }
}
