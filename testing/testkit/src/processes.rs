//! Tests that run in several processes.

use std::process::{Command, Stdio};

/// Runs a test of this binary in concurrent processes, one for each list of environment variables.
/// Returns the sum of the numbers in the lines `admitted NUMBER` that they print.
#[track_caller]
pub fn admitted_by_processes(test: &str, environments: &[Vec<(&str, &str)>]) -> u64 {
    let program = std::env::current_exe().expect("a test has a file");
    let start = |environment: &Vec<(&str, &str)>| {
        let mut process = Command::new(&program);
        process.args(["--exact", test, "--nocapture"]).envs(environment.iter().copied());
        process.stdout(Stdio::piped()).spawn().expect("the process starts")
    };
    let running: Vec<_> = environments.iter().map(start).collect();
    let admitted = running.into_iter().map(|process| {
        let output = process.wait_with_output().expect("the process ends");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{text}");
        let count =
            text.lines().find_map(|line| line.strip_prefix("admitted ")?.parse::<u64>().ok());
        count.unwrap_or_else(|| panic!("no count: {text}"))
    });
    admitted.sum()
}
