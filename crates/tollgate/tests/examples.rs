//! Runs every example as a process and compares its output with `examples/outputs/NAME.txt`.
//!
//! `UPDATE=1 cargo test -p tollgate --test examples` writes the outputs.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use tollgate_testkit::{Server, build_examples};

/// Guards against a run that finds no examples.
const EXAMPLE_COUNT: usize = 30;

#[test]
fn outputs_match_the_recorded_ones() {
    let names = names();
    assert_eq!(names.len(), EXAMPLE_COUNT, "{names:?}");
    let programs = build_examples(env!("CARGO_TARGET_TMPDIR"));
    let server = Server::start();
    let update = env::var_os("UPDATE").is_some_and(|value| value == "1");
    for name in &names {
        let printed = run(&programs.join(name), &server.url());
        let path = folder("outputs").join(format!("{name}.txt"));
        if update {
            fs::write(&path, &printed).unwrap();
        }
        let recorded = fs::read_to_string(&path)
            .unwrap_or_else(|error| panic!("{}: {error}; UPDATE=1 writes it", path.display()));
        assert!(
            printed == recorded,
            "{name} prints\n{printed}\ninstead of\n{recorded}\nUPDATE=1 records the new output"
        );
    }
    assert_eq!(names_in("outputs", "txt"), names, "each example has an output, and no other");
}

#[test]
fn index_names_every_example_and_its_policy() {
    let index = fs::read_to_string(folder("README.md")).unwrap();
    for name in names() {
        let (path, features) = match name.ends_with("_redis") {
            true => (format!("redis/{name}.rs"), " --features redis"),
            false => (format!("{name}.rs"), ""),
        };
        let command = format!("`cargo run -p tollgate{features} --example {name}`");
        let row = index.lines().find(|line| line.contains(&command));
        let row = row.unwrap_or_else(|| panic!("README.md has no {command}"));
        let source = fs::read_to_string(folder(&path)).unwrap();
        // The second cell from the end contains policies in backticks.
        let policies = row.rsplit('|').nth(2).unwrap();
        for limits in policies.split('`').skip(1).step_by(2).flat_map(|part| part.split("; ")) {
            assert!(source.contains(limits), "{name} has no {limits:?}");
        }
    }
}

fn names() -> BTreeSet<String> {
    let mut names = names_in("", "rs");
    names.append(&mut names_in("redis", "rs"));
    names
}

/// The names of the files in a folder of the examples, without their extension.
fn names_in(name: &str, extension: &str) -> BTreeSet<String> {
    let files = fs::read_dir(folder(name)).unwrap().map(|entry| entry.unwrap().path());
    let files = files.filter(|file| file.extension().is_some_and(|found| found == extension));
    files.map(|file| file.file_stem().unwrap().to_str().unwrap().to_owned()).collect()
}

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(name)
}

/// Runs an example with the URL of a server, which examples without Redis ignore.
fn run(program: &Path, url: &str) -> String {
    let output = Command::new(program).arg(url).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{} failed: {error}", program.display());
    String::from_utf8(output.stdout).unwrap()
}
