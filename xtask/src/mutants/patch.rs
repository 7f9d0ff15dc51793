//! A file of `xtask/mutants`: a description, the test command that should fail, and a diff.
//!
//! ```text
//! breaks: a refill loses the fraction of a token
//! caught-by: cargo test -p tollgate-algorithms --quiet token_bucket
//! diff --git a/crates/core/src/algorithm/token_bucket.rs b/crates/core/src/algorithm/token_bucket.rs
//! …
//! ```

use std::ffi::OsStr;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::process;

#[derive(Debug)]
pub(super) struct Patch {
    /// The name of the file without its extension.
    pub(super) name: String,
    pub(super) path: PathBuf,
    /// The defect that the patch introduces, in a sentence.
    pub(super) breaks: String,
    pub(super) command: TestCommand,
    /// The files that it changes, relative to the repository.
    pub(super) touches: Vec<String>,
}

/// `[NAME=VALUE …] cargo test [WORD …]`, without quoting: `RUSTFLAGS=--cfg=loom cargo test --test
/// loom`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TestCommand {
    environment: Vec<(String, String)>,
    /// What follows `cargo test`.
    words: Vec<String>,
}

pub(super) fn read_all(folder: &Path) -> Result<Vec<Patch>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("no folder {}", folder.display()))? {
        let path = entry?.path();
        if path.extension() == Some(OsStr::new("patch")) {
            paths.push(path);
        }
    }
    paths.sort();
    paths.iter().map(|path| read(path)).collect()
}

fn read(path: &Path) -> Result<Patch> {
    let text = fs::read_to_string(path)?;
    let stem = path.file_stem().context("no file name")?;
    let patch = parse(path, &stem.to_string_lossy(), &text);
    patch.with_context(|| format!("{}", path.display()))
}

fn parse(path: &Path, name: &str, text: &str) -> Result<Patch> {
    let is_diff = |line: &str| line.starts_with("diff --git ") || line.starts_with("--- ");
    let header: Vec<&str> = text.lines().take_while(|line| !is_diff(line)).collect();
    let (breaks, command) = parse_header(&header)?;
    let touches = touched(text);
    ensure!(!touches.is_empty(), "no change follows the header");
    Ok(Patch { name: name.to_owned(), path: path.to_owned(), breaks, command, touches })
}

fn parse_header(header: &[&str]) -> Result<(String, TestCommand)> {
    let mut breaks = None;
    let mut command = None;
    for (key, value) in fields(header)? {
        match key.as_str() {
            "breaks" => breaks = Some(value),
            "caught-by" => command = Some(value),
            _ => bail!("unknown field '{key}': a header has `breaks:` and `caught-by:`"),
        }
    }
    let breaks = breaks.filter(|text| !text.is_empty()).context("`breaks:` is missing")?;
    let command = command.context("`caught-by:` is missing")?;
    Ok((breaks, TestCommand::parse(&command)?))
}

/// `key: value` lines; an indented line continues the value above.
fn fields(header: &[&str]) -> Result<Vec<(String, String)>> {
    let mut fields: Vec<(String, String)> = Vec::new();
    for line in header.iter().filter(|line| !line.trim().is_empty()) {
        let is_continued = line.starts_with([' ', '\t']);
        if let Some((_, value)) = fields.last_mut().filter(|_| is_continued) {
            *value = format!("{value} {}", line.trim());
            continue;
        }
        let (key, value) = line.split_once(':').with_context(|| format!("not a field: {line}"))?;
        fields.push((key.to_owned(), value.trim().to_owned()));
    }
    Ok(fields)
}

/// The files that a diff names on either side; an added or deleted file is on one side only.
fn touched(diff: &str) -> Vec<String> {
    let mut touched = Vec::new();
    let sides = diff
        .lines()
        .filter_map(|line| line.strip_prefix("--- a/").or_else(|| line.strip_prefix("+++ b/")));
    for side in sides {
        // Some programs append a tab and the time.
        let path = side.split('\t').next().unwrap_or(side).to_owned();
        if !touched.contains(&path) {
            touched.push(path);
        }
    }
    touched
}

impl TestCommand {
    pub(super) fn parse(line: &str) -> Result<Self> {
        let mut words = line.split_whitespace().map(String::from).peekable();
        let mut environment = Vec::new();
        while let Some((name, value)) = words.peek().and_then(|word| word.split_once('=')) {
            environment.push((name.to_owned(), value.to_owned()));
            words.next();
        }
        let starts =
            words.next().as_deref() == Some("cargo") && words.next().as_deref() == Some("test");
        ensure!(starts, "not a `cargo test` command: {line}");
        Ok(Self { environment, words: words.collect() })
    }

    /// Compiles the tests.
    pub(super) fn build(&self, tree: &Path, target: &Path) -> Command {
        let mut command = self.command(tree, target);
        let own = self.words.iter().take_while(|word| *word != "--");
        command.args(own).arg("--no-run");
        command
    }

    /// Runs them.
    pub(super) fn run(&self, tree: &Path, target: &Path) -> Command {
        let mut command = self.command(tree, target);
        command.args(&self.words);
        command
    }

    fn command(&self, tree: &Path, target: &Path) -> Command {
        let mut command = process::cargo(tree, "test");
        let environment = self.environment.iter().map(|(name, value)| (name, value));
        command.envs(environment).env("CARGO_TARGET_DIR", target);
        // Symbols are half the link time, and these binaries are not debugged.
        command.env("CARGO_PROFILE_DEV_DEBUG", "0");
        // The next patch rebuilds the same crates. CI turns this off for the tests.
        command.env("CARGO_INCREMENTAL", "1");
        command
    }
}

impl fmt::Display for TestCommand {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, value) in &self.environment {
            write!(formatter, "{name}={value} ")?;
        }
        write!(formatter, "cargo test {}", self.words.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIFF: &str =
        "diff --git a/src/a.rs b/src/a.rs\n--- a/src/a.rs\n+++ b/src/a.rs\n@@ -1 +1 @@\n-a\n+b\n";

    fn parsed(header: &str) -> Result<Patch> {
        parse(Path::new("one.patch"), "one", &format!("{header}{DIFF}"))
    }

    #[test]
    fn header_names_defect_and_test_command() {
        let patch =
            parsed("breaks: the fraction\n  is lost\ncaught-by: cargo test -p core -- bucket\n\n")
                .unwrap();
        assert_eq!(patch.breaks, "the fraction is lost");
        assert_eq!(patch.command.to_string(), "cargo test -p core -- bucket");
        assert_eq!(patch.touches, ["src/a.rs"]);
    }

    #[test]
    fn incomplete_headers_are_rejected() {
        for header in [
            "",
            "breaks:\n",
            "breaks: a: b\n",
            "caught-by: cargo test\n",
            "breaks: a\ncaught by: cargo test\n",
            "words\n",
        ] {
            assert!(parsed(header).is_err(), "{header}");
        }
        for command in ["cargo bench", "make test", "RUSTFLAGS=", "sh -c cargo test"] {
            assert!(parsed(&format!("breaks: a\ncaught-by: {command}\n")).is_err(), "{command}");
        }
        assert!(parse(Path::new("one.patch"), "one", "breaks: nothing at all\n").is_err());
    }

    #[test]
    fn build_and_run_commands_share_their_arguments() {
        let command =
            TestCommand::parse("RUSTFLAGS=--cfg=loom cargo test -p store -- --exact a").unwrap();
        let (tree, target) = (Path::new("tree"), Path::new("build"));
        let words = |command: Command| process::display(&command).replace(" --locked", "");
        assert_eq!(
            words(command.build(tree, target)),
            "CARGO_INCREMENTAL=1 CARGO_PROFILE_DEV_DEBUG=0 CARGO_TARGET_DIR=build RUSTFLAGS=--cfg=loom cargo test -p store --no-run"
        );
        assert_eq!(
            words(command.run(tree, target)),
            "CARGO_INCREMENTAL=1 CARGO_PROFILE_DEV_DEBUG=0 CARGO_TARGET_DIR=build RUSTFLAGS=--cfg=loom cargo test -p store -- --exact a"
        );
    }

    #[test]
    fn files_on_both_sides_of_a_diff_are_listed() {
        let diff = "--- a/old.rs\n+++ /dev/null\n--- /dev/null\n+++ b/new.rs\n--- a/x.rs\t2026\n+++ b/x.rs\t2026\n";
        assert_eq!(touched(diff), ["old.rs", "new.rs", "x.rs"]);
    }
}
