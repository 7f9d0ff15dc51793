//! `cargo xtask tidy`: project rules that no existing tool checks.

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Result, ensure};

use crate::arguments::Arguments;
use crate::{Subcommand, process, repository};

pub(crate) const SUBCOMMAND: Subcommand = Subcommand {
    name: "tidy",
    usage: "",
    about: "file lengths, absolute paths, white space, rows of the Lua files, mutants that apply",
    run,
};

const MAX_RUST_LINES: usize = 500;
/// A map of the code base is only useful if it is read.
const MAX_ARCHITECTURE_LINES: usize = 150;

/// Folders whose content differs between machines.
const LOCAL_FOLDERS: &[&str] = &["/root", "/home", "/tmp", "/Users"];

const LUA_FOLDER: &str = "crates/redis/";
/// The file that assembles the script from the Lua files.
const LUA_SCRIPT: &str = "crates/redis/src/script.rs";
const ROWS: &str = "testing/conformance/rows";

/// A text file of the repository.
#[derive(Debug)]
struct File {
    path: String,
    text: String,
}

/// A place that breaks a rule.
#[derive(Debug, PartialEq, Eq)]
struct Finding {
    path: String,
    line: usize,
    message: String,
}

impl Finding {
    fn new(file: &File, line: usize, message: impl Into<String>) -> Self {
        Self { path: file.path.clone(), line, message: message.into() }
    }
}

fn run(arguments: Arguments) -> Result<ExitCode> {
    arguments.finish()?;
    check(&repository::root())?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn check(root: &Path) -> Result<()> {
    white_space(root)?;
    let names = repository::files(root)?;
    let mut files = Vec::new();
    for name in &names {
        // Files that are not UTF-8, such as snapshots, are not text.
        if let Ok(text) = String::from_utf8(fs::read(root.join(name))?) {
            files.push(File { path: name.clone(), text });
        }
    }
    let findings = findings(&files, &names);
    for Finding { path, line, message } in &findings {
        println!("{path}:{line}: {message}");
    }
    ensure!(findings.is_empty(), "{} findings", findings.len());
    println!("checked {} files", files.len());
    mutants_apply(root, &names)
}

/// Fails on mutants that no longer apply to the code, long before all of them run.
fn mutants_apply(root: &Path, names: &[String]) -> Result<()> {
    for name in names.iter().filter(|name| name.ends_with(".patch")) {
        let mut apply = Command::new("git");
        apply.current_dir(root).args(["apply", "--check", name]);
        process::output(apply)?;
    }
    Ok(())
}

/// Fails on trailing white space, carriage returns and blank lines at the end of a file.
fn white_space(root: &Path) -> Result<()> {
    let mut empty_tree = Command::new("git");
    empty_tree.current_dir(root).args(["hash-object", "-t", "tree", "/dev/null"]);
    let mut diff = Command::new("git");
    diff.current_dir(root).args(["diff", "--check", process::output(empty_tree)?.trim(), "--"]);
    // An empty context line of a patch is one space; a snapshot holds the output of a program.
    diff.args([".", ":!*.patch", ":!*.snap"]);
    process::run(diff)
}

fn findings(files: &[File], names: &[String]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files {
        findings.extend(too_long(file));
        findings.extend(absolute_paths(file));
        if file.path.starts_with(LUA_FOLDER) && file.path.ends_with(".lua") {
            findings.extend(unused_lua(file, files));
            findings.extend(lua_without_rows(file, names));
        }
    }
    findings
}

fn too_long(file: &File) -> Option<Finding> {
    let max = match file.path.as_str() {
        "ARCHITECTURE.md" => MAX_ARCHITECTURE_LINES,
        path if path.ends_with(".rs") => MAX_RUST_LINES,
        _ => return None,
    };
    let lines = file.text.lines().count();
    (lines > max).then(|| Finding::new(file, max, format!("{lines} lines, more than {max}")))
}

fn absolute_paths(file: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    let is_test = ["tests/", "benches/", "tests.rs"].iter().any(|part| file.path.contains(part));
    if is_test || file.path == "xtask/src/tidy.rs" {
        return findings;
    }
    // A module of tests stands at the end of its file.
    let code = file.text.lines().take_while(|line| line.trim() != "#[cfg(test)]");
    for (index, line) in code.enumerate() {
        if let Some(folder) = LOCAL_FOLDERS.iter().find(|folder| names_folder(line, folder)) {
            let message = format!("`{folder}` differs between machines");
            findings.push(Finding::new(file, index + 1, message));
        }
    }
    findings
}

/// Whether `line` contains the absolute path `folder` or a path below it; `target/tmp` and `/tmpfs`
/// are different paths.
fn names_folder(line: &str, folder: &str) -> bool {
    line.match_indices(folder).any(|(start, _)| {
        let (before, rest) = line.split_at(start);
        let before = before.chars().next_back();
        let after = rest.chars().nth(folder.len());
        before.is_none_or(|c| !c.is_alphanumeric() && !"_-./:*}".contains(c))
            && after.is_none_or(|c| !c.is_alphanumeric() && !"_-.".contains(c))
    })
}

fn unused_lua(file: &File, files: &[File]) -> Option<Finding> {
    let (_, name) = file.path.split_once("/lua/")?;
    let include = format!("../lua/{name}\"");
    let script = files.iter().find(|other| other.path == LUA_SCRIPT);
    let is_used = script.is_some_and(|script| script.text.contains(&include));
    (!is_used).then(|| Finding::new(file, 1, format!("not included by {LUA_SCRIPT}")))
}

/// Each Lua file names the conformance rows that test it.
fn lua_without_rows(file: &File, names: &[String]) -> Option<Finding> {
    let mut lines = file.text.lines().enumerate();
    let Some((index, rows)) =
        lines.find_map(|(index, line)| Some((index, line.strip_prefix("-- Rows: ")?)))
    else {
        let message = format!("no line `-- Rows: …` with files below {ROWS}");
        return Some(Finding::new(file, 1, message));
    };
    let missing = rows.split(", ").find(|row| !names.contains(&format!("{ROWS}/{row}")))?;
    Some(Finding::new(file, index + 1, format!("no such file: {ROWS}/{missing}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(files: &[(&str, &str)], expected: usize) {
        let names: Vec<String> = files.iter().map(|(path, _)| (*path).to_owned()).collect();
        let files: Vec<File> = files
            .iter()
            .map(|(path, text)| File { path: (*path).to_owned(), text: (*text).to_owned() })
            .collect();
        let found = findings(&files, &names);
        assert_eq!(found.len(), expected, "{found:?}");
    }

    #[test]
    fn long_files_are_found() {
        let lines = |count: usize| "\n".repeat(count);
        check(&[("src/a.rs", &lines(500))], 0);
        check(&[("src/a.rs", &lines(501))], 1);
        check(&[("README.md", &lines(501))], 0);
        check(&[("ARCHITECTURE.md", &lines(151))], 1);
    }

    #[test]
    fn absolute_paths_outside_tests_are_found() {
        check(&[("README.md", "see /home/ada/x and /tmp/y")], 1);
        check(&[("README.md", "under `/root`")], 1);
        check(&[("README.md", "in target/tmp/x, /homework, https://example.com/tmp/, /tmpfs")], 0);
        check(&[("crates/a/tests/b.rs", "\n\"/tmp/x\"")], 0);
        check(&[("crates/a/src/b.rs", "fn f() { \"/tmp/x\" }")], 1);
        check(&[("crates/a/src/b.rs", "#[cfg(test)]\nmod tests {\n\"/tmp/x\"\n}")], 0);
    }

    #[test]
    fn lua_without_rows_or_use_is_found() {
        let check_lua = |lua: &str, script: &str, expected: usize| {
            let rows = format!("{ROWS}/limits/log.rows");
            let files =
                [("crates/redis/lua/a/b.lua", lua), (LUA_SCRIPT, script), (&*rows, "rows 0\n")];
            check(&files, expected);
        };
        let used = "include_str!(\"../lua/a/b.lua\"),";
        check_lua("-- Rows: limits/log.rows\n", used, 0);
        check_lua("-- Rows: limits/log.rows\n", "", 1);
        check_lua("-- Evaluates a log.\n", used, 1);
        check_lua("-- Rows: limits/log.rows, limits/none.rows\n", used, 1);
        check_lua("return 1\n", "", 2);
    }
}
