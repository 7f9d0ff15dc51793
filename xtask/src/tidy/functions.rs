//! Functions that have grown too long to be understood at once.

use super::source::{File, Tree, end_of_item, is_word};
use super::{Finding, Rule};

pub(super) const RULE: Rule = Rule { name: "functions", find };

const LINES: usize = 70;

fn find(tree: &Tree) -> Vec<Finding> {
    tree.rust().flat_map(too_long).collect()
}

fn too_long(file: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (start, _) in file.code.match_indices("fn ") {
        let Some(name) = name(&file.code, start) else {
            continue;
        };
        let line = file.line(start);
        let size = file.line(end_of_item(&file.code, start)) + 1 - line;
        if size > LINES {
            let place = format!("{}::{name}", file.path);
            let message = format!("`{name}` has {size} lines, more than {LINES}");
            findings.push(Finding { size, ..Finding::new(&place, line, message) });
        }
    }
    findings
}

/// The name of the function whose `fn` stands at `start`; nothing if it is the end of a word, or a
/// type.
fn name(code: &str, start: usize) -> Option<&str> {
    let in_word = start > 0 && code.as_bytes().get(start - 1).copied().is_some_and(is_word);
    let name = code
        .get(start + 3..)?
        .split(|letter: char| !(letter.is_alphanumeric() || letter == '_'))
        .next()?;
    (!in_word && !name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(source: &str, expected: &[(&str, usize, usize)]) {
        let findings = find(&Tree::of(&[("a.rs", source)]));
        let found: Vec<_> = findings
            .iter()
            .map(|finding| (finding.place.as_str(), finding.line, finding.size))
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn long_functions_are_found() {
        let body = |lines: usize| "    call();\n".repeat(lines);
        check(&format!("fn short() {{\n{}}}\n", body(68)), &[]);
        check(&format!("\npub fn long() {{\n{}}}\n", body(69)), &[("a.rs::long", 2, 71)]);
        check(&format!("mod m {{ fn a() {{}}\n fn b();\n{} }}", body(99)), &[]);
        check(&format!("// fn a() {{\n{}\n/* }} */", body(99)), &[]);
        check(&format!("type F = fn (u8);\n{}", body(99)), &[]);
    }
}
