//! Programs that print what they see, a line for each thing.

use std::io::Write;
use std::process::{Command, Stdio};

/// Runs a program to its end, with this as its input; what it printed.
#[track_caller]
pub(crate) fn printed(mut command: Command, input: &[u8]) -> String {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_owned();
    // Aside, so that neither waits for the other to read.
    let writer = std::thread::spawn(move || stdin.write_all(&input));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{command:?} {}:\n{said}{complaint}", output.status);
    said.into_owned()
}

/// Compares line by line, so that a difference shows where it is.
#[track_caller]
pub(crate) fn check_lines(said: &str, expected: &str) {
    let expected = expected.trim_start_matches('\n');
    for (at, (found, wanted)) in said.lines().zip(expected.lines()).enumerate() {
        assert_eq!(found, wanted, "line {}, in all:\n{said}", at + 1);
    }
    assert_eq!(said.lines().count(), expected.lines().count(), "{said}");
}
