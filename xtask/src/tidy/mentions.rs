//! The source carries no trace of the patches in `xtask/mutants`: it would be written for them.

use super::source::Tree;
use super::{Finding, Rule};

pub(super) const RULE: Rule = Rule { name: "mentions", find };

fn find(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust().filter(|file| !file.path.starts_with("xtask/")) {
        for (at, line) in file.text.lines().enumerate() {
            if line.to_lowercase().contains("mutant") {
                findings.push(Finding::new(&file.path, at + 1, "the source knows of no mutants"));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mentions_are_found_in_comments_too() {
        let tree = Tree::of(&[
            ("crates/a/src/lib.rs", "fn f() {}\n// Mutants flip this.\n"),
            ("xtask/src/mutants.rs", "// Mutants.\n"),
            ("CONTRIBUTING.md", "mutants\n"),
        ]);
        assert_eq!(
            find(&tree),
            [Finding::new("crates/a/src/lib.rs", 2, "the source knows of no mutants")]
        );
    }
}
