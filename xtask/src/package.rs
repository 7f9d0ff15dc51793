//! The packages of the published crates, and the feature matrix.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail, ensure};

use crate::process;
use crate::published::{Published, published};

/// Assembles the package of each published crate without compiling it; needs no network. An
/// incomplete manifest is an error.
pub(crate) fn assemble(root: &Path) -> Result<()> {
    let mut package = package(root, &published(root)?);
    package.args(["--no-verify", "--exclude-lockfile", "--allow-dirty", "--offline"]);
    let warnings = warnings(&process::error_output(package)?);
    ensure!(warnings.is_empty(), "{}", warnings.join("; "));
    Ok(())
}

/// `cargo package` for these crates, which cargo sorts by their dependencies.
pub(crate) fn package(root: &Path, crates: &[Published]) -> Command {
    let mut package = process::cargo(root, "package");
    for published in crates {
        package.args(["--package", &published.name]);
    }
    package
}

/// The warnings, except those for tests and benchmarks that a package leaves out on purpose.
fn warnings(output: &str) -> Vec<String> {
    let warnings = output.lines().filter_map(|line| line.strip_prefix("warning: "));
    let warnings = warnings.filter(|warning| !warning.starts_with("ignoring "));
    warnings.map(String::from).collect()
}

/// Lints each library that has features with none, each and all of them. The lints of the workspace
/// include the binary with and without its feature.
pub(crate) fn check_features(root: &Path) -> Result<()> {
    let libraries = published(root)?.into_iter().filter(Published::is_library);
    for published in libraries.filter(|library| !library.features.is_empty()) {
        for features in feature_sets(&published.features) {
            // Clippy, so that the dependencies are those that the lints have compiled.
            let mut clippy = process::cargo(root, "clippy");
            clippy.args(["--quiet", "--package", &published.name, "--no-default-features"]);
            if !features.is_empty() {
                clippy.args(["--features", &features]);
            }
            clippy.args(["--", "--deny", "warnings"]);
            if let Err(error) = process::run(clippy) {
                bail!("{} with the features [{features}]: {error}", published.name);
            }
        }
    }
    Ok(())
}

/// No feature, each feature, and all features, each set joined by commas.
fn feature_sets(features: &[String]) -> Vec<String> {
    let mut sets = vec![String::new()];
    sets.extend(features.iter().cloned());
    if features.len() > 1 {
        sets.push(features.join(","));
    }
    sets
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_about_tests_are_ignored_and_others_are_not() {
        let output = "   Packaging a v0.1.0\nwarning: ignoring test `t` as `tests/t.rs` is not \
                      included in the published package\nwarning: manifest has no description\n";
        assert_eq!(warnings(output), ["manifest has no description"]);
    }

    #[test]
    fn features_are_compiled_alone_and_together() {
        assert_eq!(feature_sets(&[]), [""]);
        assert_eq!(feature_sets(&["a".to_owned()]), ["", "a"]);
        assert_eq!(feature_sets(&["a".to_owned(), "b".to_owned()]), ["", "a", "b", "a,b"]);
    }
}
