//! A minimal package with one patch for each verdict.

use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use super::*;
use crate::process;

const MANIFEST: &str =
    "[package]\nname = \"tiny\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[workspace]\n";
/// With `--locked`, as in CI, cargo does not create a lock file.
const LOCK: &str = "version = 4\n\n[[package]]\nname = \"tiny\"\nversion = \"0.1.0\"\n";
const LIBRARY: &str = "\
//! Adds.

/// The sum.
pub fn add(a: u32, b: u32) -> u32 {
    a + b
}

/// Counts down.
pub fn count_down(from: u32) -> u32 {
    let mut left = from;
    while left > 0 {
        left -= 1;
    }
    left
}

#[test]
fn adds() {
    assert_eq!(add(1, 1), 2);
}

#[test]
fn counts_down() {
    assert_eq!(count_down(3), 0);
}
";

/// A patch that replaces one line of the library, with the line before and the line after as its
/// context.
fn patch(breaks: &str, caught_by: &str, was: &str, becomes: &str) -> String {
    let lines: Vec<&str> = LIBRARY.lines().collect();
    let at = lines.iter().position(|line| *line == was).unwrap_or(1);
    let (before, after) = (lines[at - 1], lines[at + 1]);
    format!(
        "breaks: {breaks}\ncaught-by: {caught_by}\n\n--- a/src/lib.rs\n+++ b/src/lib.rs\n\
         @@ -{at},3 +{at},3 @@\n {before}\n-{was}\n+{becomes}\n {after}\n"
    )
}

fn tiny_repository() -> PathBuf {
    let root = env::temp_dir().join(format!("xtask-mutants-{}", std::process::id()));
    fs::create_dir_all(root.join("src")).unwrap();
    fs::create_dir_all(root.join("xtask/mutants")).unwrap();
    let test = "cargo test --quiet";
    let narrow = "cargo test --quiet counts_down";
    let sum = "    a + b";
    let moved = patch("what was moved", test, sum, "    a * b").replace("lib.rs", "moved.rs");
    let patches = [
        ("caught", patch("the sum", test, sum, "    a * b")),
        ("elsewhere", patch("the sum", narrow, sum, "    a * b")),
        ("hung", patch("the end", narrow, "        left -= 1;", "        left += 0;")),
        ("moved", moved),
        ("old", patch("what is gone", test, "    a - b", sum)),
        ("wrong", patch("the types", test, sum, "    a + true")),
        ("zero", patch("nothing", test, sum, "    b + a")),
    ];
    for (name, text) in patches {
        fs::write(root.join(format!("xtask/mutants/{name}.patch")), text).unwrap();
    }
    fs::write(root.join("Cargo.toml"), MANIFEST).unwrap();
    fs::write(root.join("Cargo.lock"), LOCK).unwrap();
    fs::write(root.join("src/lib.rs"), LIBRARY).unwrap();
    fs::write(root.join(".gitignore"), "/target\n").unwrap();
    git_init(&root);
    root
}

fn git_init(root: &Path) {
    let mut init = Command::new("git");
    init.current_dir(root).args(["init", "--quiet"]);
    process::output(init).unwrap();
}

fn words(root: &Path, filter: &str) -> Vec<(String, &'static str)> {
    let verdicts = verdicts(root, filter, Duration::from_secs(2)).unwrap();
    verdicts.into_iter().map(|(name, verdict)| (name, verdict.word())).collect()
}

#[test]
fn each_verdict_is_reached() {
    let root = tiny_repository();
    let expected = [
        ("caught", "caught"),
        ("elsewhere", "MISSED"),
        ("hung", "caught"),
        ("moved", "STALE"),
        ("old", "STALE"),
        ("wrong", "STALE"),
        ("zero", "MISSED"),
    ];
    assert_eq!(words(&root, ""), expected.map(|(name, word)| (name.to_owned(), word)));
    assert!(check(&root, "zero").is_err());
    check(&root, "caught").unwrap();

    let copy = fs::read_to_string(root.join("target/mutants/tree/src/lib.rs")).unwrap();
    assert_eq!(copy, LIBRARY, "the patch was not reverted");
    assert_eq!(fs::read_to_string(root.join("src/lib.rs")).unwrap(), LIBRARY);

    assert!(check(&root, "no such patch").is_err());
    fs::write(root.join("src/lib.rs"), LIBRARY.replace("a + b", "a * b")).unwrap();
    let error = check(&root, "caught").unwrap_err().to_string();
    assert!(error.contains("the unpatched copy does not pass"), "{error}");
    fs::remove_dir_all(&root).unwrap();
}
