//! Runs every example as a process, and holds what it prints against `outputs/NAME.txt`.
//!
//! `UPDATE=1 cargo test -p tollgate-examples` writes those files anew.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use tollgate_testkit::Server;

/// All patterns of the design but 2, which keeps who called; those on Redis; and seven ways in.
const EXAMPLES: usize = 12 + 7 + 7;

/// Where the examples are.
const ROOMS: [&str; 3] = ["patterns", "redis", "ways"];

#[test]
fn every_example_prints_what_is_written_down() {
    let names: BTreeSet<String> = ROOMS.into_iter().flat_map(|room| names_in(room, "rs")).collect();
    assert_eq!(names.len(), EXAMPLES, "{names:?}");
    // All at once, so that they are built side by side.
    assert!(cargo(&["build", "--examples"]).status().unwrap().success(), "they do not build");
    let server = Server::start();
    let update = env::var_os("UPDATE").is_some_and(|var_os| var_os == "1");
    for name in &names {
        let printed = run(name, &server.url());
        let path = room("outputs").join(format!("{name}.txt"));
        if update {
            fs::write(&path, &printed).unwrap();
        }
        let written = fs::read_to_string(&path).unwrap_or_default();
        assert!(
            printed == written,
            "{name} prints\n{printed}\nbut {} says\n{written}\nUPDATE=1 takes what it prints",
            path.display()
        );
    }
    assert_eq!(names_in("outputs", "txt"), names, "an output for each example, and no other");
}

#[test]
fn the_table_names_every_example_and_its_policy() {
    let table = fs::read_to_string(room("README.md")).unwrap();
    for name in names_in("outputs", "txt") {
        let command = format!("`cargo run -p tollgate-examples --example {name}`");
        let row = table.lines().find(|line| line.contains(&command));
        let row = row.unwrap_or_else(|| panic!("README.md has no {command}"));
        let source = ROOMS.map(|r| room(r).join(format!("{name}.rs")));
        let source = source.iter().find_map(|source| fs::read_to_string(source).ok()).unwrap();
        // The second cell from the end is the policy, in backticks, several joined by commas.
        let policies = row.rsplit('|').nth(2).unwrap();
        for limits in policies.split('`').skip(1).step_by(2).flat_map(|part| part.split("; ")) {
            assert!(source.contains(limits), "{name} has no {limits:?}");
        }
    }
}

/// The names of the files of a room.
fn names_in(name: &str, extension: &str) -> BTreeSet<String> {
    let files = fs::read_dir(room(name)).unwrap().map(|x| x.unwrap().path());
    let files = files.filter(|file| file.extension().is_some_and(|e| e == extension));
    files.map(|file| file.file_stem().unwrap().to_str().unwrap().to_owned()).collect()
}

fn room(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// What an example prints, built and run by the command of the table. The examples that cargo builds
/// beside a test are not always programs: with `--all-targets` they are test harnesses.
/// Those that need a server get its URL; the others take no notice.
fn run(name: &str, url: &str) -> String {
    let output = cargo(&["run", "--example", name]).args(["--", url]).output().unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name} ended with {}: {complaint}", output.status);
    String::from_utf8(output.stdout).unwrap()
}

/// A call of cargo that builds with what is here already: the profile and packages of this test.
fn cargo(arguments: &[&str]) -> Command {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(arguments).args(["--package", "tollgate-examples", "--profile", "test"]);
    cargo.args(["--quiet", "--offline"]).current_dir(env!("CARGO_MANIFEST_DIR"));
    cargo
}
