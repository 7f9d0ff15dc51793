//! Files that have grown too long to be read at once.

use super::source::{File, Tree};
use super::{Finding, Rule};

pub(super) const RULE: Rule = Rule { name: "files", find };

const RUST_LINES: usize = 500;
/// The map must fit a reader's head.
const ARCHITECTURE_LINES: usize = 150;

fn find(tree: &Tree) -> Vec<Finding> {
    tree.files.iter().filter_map(too_long).collect()
}

fn too_long(file: &File) -> Option<Finding> {
    let most = match file.path.as_str() {
        "ARCHITECTURE.md" => ARCHITECTURE_LINES,
        path if path.ends_with(".rs") => RUST_LINES,
        _ => return None,
    };
    let size = file.text.lines().count();
    let message = format!("{size} lines, more than {most}");
    (size > most).then(|| Finding { size, ..Finding::new(&file.path, most, message) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_files_are_found() {
        let check = |path: &str, lines: usize, found: usize| {
            let tree = Tree::of(&[(path, &"\n".repeat(lines))]);
            assert_eq!(find(&tree).len(), found, "{path} of {lines} lines");
        };
        check("src/a.rs", 500, 0);
        check("src/a.rs", 501, 1);
        check("README.md", 501, 0);
        check("ARCHITECTURE.md", 151, 1);
    }
}
