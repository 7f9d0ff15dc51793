//! Runs the tool.

use std::process::{Command, Output, Stdio};

use serde_json::Value;

pub(crate) fn tollgate() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate"));
    command.env_remove("TOLLGATE_PASSWORD").stdin(Stdio::null());
    command
}

/// Runs `bench` with arguments, split like [`split`]. Returns the exit code, standard output and
/// standard error.
pub(crate) fn bench(words: &str) -> (i32, String, String) {
    let Output { status, stdout, stderr } =
        tollgate().arg("bench").args(split(words)).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code().unwrap(), text(stdout), text(stderr))
}

/// Splits at spaces and double quotes, like a shell.
pub(crate) fn split(words: &str) -> Vec<String> {
    let parts = words.split('"').enumerate();
    let words = parts.flat_map(|(index, part)| {
        if index % 2 == 1 {
            return vec![part.to_owned()];
        }
        part.split_whitespace().map(str::to_owned).collect()
    });
    words.collect()
}

/// Runs `bench` with JSON output. Returns the exit code and the report.
pub(crate) fn json(words: &str) -> (i32, Value) {
    let (code, output, error) = bench(&format!("{words} -o json"));
    let object = serde_json::from_str(&output);
    (code, object.unwrap_or_else(|_| panic!("{words}: exit {code}, {output}{error}")))
}
