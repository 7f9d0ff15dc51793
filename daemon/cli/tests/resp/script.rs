//! Runs client programs, which print one line per result.

use std::io::Write;
use std::process::{Command, Stdio};

/// Runs a program with this standard input, and returns its standard output.
#[track_caller]
pub(crate) fn printed(mut command: Command, input: &[u8]) -> String {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_owned();
    // On another thread, so that a full pipe blocks neither side.
    let writer = std::thread::spawn(move || stdin.write_all(&input));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{command:?} {}:\n{printed}{error}", output.status);
    printed.into_owned()
}

/// Compares line by line, so that a failure shows the line that differs.
#[track_caller]
pub(crate) fn check_lines(output: &str, expected: &str) {
    let expected = expected.trim_start_matches('\n');
    for (index, (found, wanted)) in output.lines().zip(expected.lines()).enumerate() {
        assert_eq!(found, wanted, "line {} of\n{output}", index + 1);
    }
    assert_eq!(output.lines().count(), expected.lines().count(), "{output}");
}
