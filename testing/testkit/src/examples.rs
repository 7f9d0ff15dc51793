//! Examples as programs. With `--all-targets`, cargo builds those beside a test as test harnesses.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// Builds the examples of the workspace, and returns their folder. `target_tmpdir` is
/// `env!("CARGO_TARGET_TMPDIR")` of the test.
///
/// The features are those of `cargo xtask test`: with others, dependencies would be compiled again.
#[must_use]
pub fn build_examples(target_tmpdir: &str) -> PathBuf {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--workspace", "--features", "tollgate-cli/otlp", "--examples"]);
    cargo.args(["--profile", "test", "--quiet", "--offline"]);
    // The build script of ring runs again whenever these change.
    for (name, _) in env::vars() {
        if name.starts_with("CARGO_PKG") || name.starts_with("CARGO_MANIFEST") {
            cargo.env_remove(name);
        }
    }
    cargo.current_dir(env!("CARGO_MANIFEST_DIR"));
    assert!(cargo.status().expect("cargo starts").success(), "the examples do not compile");
    let target = Path::new(target_tmpdir).parent().expect("it is a folder of the target folder");
    fs::canonicalize(target.join("debug/examples")).expect("it was just built")
}
