//! What somebody meant to come back to.

use super::source::Tree;
use super::{Finding, Rule};

pub(super) const RULE: Rule = Rule { name: "leftovers", find };

const LEFTOVERS: &[&str] = &["todo!", "unimplemented!", "dbg!", "#[ignore"];

fn find(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust() {
        for leftover in LEFTOVERS {
            for (at, _) in file.code.match_indices(leftover) {
                let message = format!("`{leftover}` is left over");
                findings.push(Finding::new(&file.path, file.line(at), message));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leftovers_are_found_in_code_only() {
        let source = "// todo!()\nfn f() { todo!() }\n#[ignore = \"slow\"]\nfn g() { \"dbg!\" }\n";
        let lines: Vec<usize> =
            find(&Tree::of(&[("a.rs", source)])).iter().map(|finding| finding.line).collect();
        assert_eq!(lines, [2, 3]);
    }
}
