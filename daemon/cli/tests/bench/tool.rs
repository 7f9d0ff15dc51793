//! Runs the tool.

use serde_json::Value;

use crate::process::run;

/// Runs `bench` with arguments, split like [`split`]. Returns the exit code, standard output and
/// standard error.
pub(crate) fn bench(words: &str) -> (i32, String, String) {
    run([&["bench".to_owned()], &*split(words)].concat())
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
