//! Spaces that nobody sees: at the end of a line, before the end of a file, and carriage returns.

use super::source::{File, Tree};
use super::{Finding, Rule};

pub(super) const RULE: Rule = Rule { name: "whitespace", find };

/// A patch's empty context lines are one space; a snapshot is what a program printed.
const OTHERS: &[&str] = &[".patch", ".snap"];

fn find(tree: &Tree) -> Vec<Finding> {
    let is_other = |file: &&File| OTHERS.iter().any(|ending| file.path.ends_with(ending));
    tree.files.iter().filter(|file| !is_other(file)).flat_map(trailing).collect()
}

fn trailing(file: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (at, line) in file.text.split('\n').enumerate() {
        if line.ends_with(char::is_whitespace) {
            findings.push(Finding::new(&file.path, at + 1, "space at the end of the line"));
        }
    }
    if !file.text.is_empty() && (!file.text.ends_with('\n') || file.text.ends_with("\n\n")) {
        let last = file.text.lines().count();
        findings.push(Finding::new(&file.path, last, "a file ends with one end of line"));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unseen_spaces_are_found() {
        let check = |path: &str, text: &str, found: usize| {
            assert_eq!(find(&Tree::of(&[(path, text)])).len(), found, "{path}: {text:?}");
        };
        check("a.md", "", 0);
        check("a.md", "one\n\ntwo\n", 0);
        check("a.md", "one \n\t\ntwo\r\n", 3);
        check("a.md", "one", 1);
        check("a.md", "one\n\n", 1);
        check("a.patch", " \n", 0);
    }
}
