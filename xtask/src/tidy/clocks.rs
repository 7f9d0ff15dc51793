//! Clocks read anywhere but in the store's clock: a decision that reads its own time cannot be
//! tested or replayed.

use super::source::{File, Tree, is_word};
use super::{Finding, Rule};

pub(super) const RULE: Rule = Rule { name: "clocks", find };

const CLOCKS: &[&str] = &["SystemTime::now", "Instant::now", "quanta", "clock_gettime"];

/// Where clocks may be read, beside tests and benchmarks.
const ROOMS: &[(&str, &str)] = &[
    ("crates/store/src/clock.rs", "it is the clock"),
    ("tools/load/src/clock.rs", "it measures"),
    ("bench/", "it measures"),
    ("xtask/", "it times the programs that it runs"),
];

fn find(tree: &Tree) -> Vec<Finding> {
    let is_room = |file: &&File| ROOMS.iter().any(|(room, _)| file.path.starts_with(room));
    tree.rust().filter(|file| !is_room(file)).flat_map(clocks).collect()
}

fn clocks(file: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    for clock in CLOCKS {
        for (at, _) in file.code.match_indices(clock) {
            let in_word = at > 0 && file.code.as_bytes().get(at - 1).copied().is_some_and(is_word);
            if !in_word && !file.is_test(at) {
                let message = format!("`{clock}`: time is read in tollgate-store's clock only");
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
    fn stray_clocks_are_found() {
        let check = |path: &str, source: &str, found: usize| {
            assert_eq!(find(&Tree::of(&[(path, source)])).len(), found, "{path}: {source}");
        };
        check("crates/tollgate/src/a.rs", "let now = std::time::Instant::now();", 1);
        check("crates/tollgate/src/a.rs", "use quanta::Clock;", 1);
        check("crates/tollgate/src/a.rs", "// not Instant::now", 0);
        check("crates/tollgate/src/a.rs", "MockInstant::now()", 0);
        check(
            "crates/tollgate/src/a.rs",
            "#[cfg(test)] mod tests { fn f() { Instant::now() } }",
            0,
        );
        check("crates/tollgate/tests/a.rs", "Instant::now()", 0);
        check("crates/store/src/clock.rs", "Instant::now()", 0);
        check("crates/store/src/clocks.rs", "Instant::now()", 1);
    }
}
