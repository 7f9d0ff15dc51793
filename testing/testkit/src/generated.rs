//! Files of the repository that are generated from the code.

use std::path::Path;

/// Asserts that a file of the repository has exactly this content, or writes it if the environment
/// variable `UPDATE` is set. `package` and `test` name the test in the message.
pub fn assert_up_to_date(file: &str, expected: &str, package: &str, test: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, expected).expect("the generated file is writable");
    }
    // A missing file is not up to date.
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == expected,
        "{file} is not up to date; run `UPDATE=1 cargo test -p {package} --test {test}` and review \
         the diff"
    );
}
