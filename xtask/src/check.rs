//! `cargo xtask check`: everything that can be said about the source without running it.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;

use crate::arguments::Arguments;
use crate::steps::Steps;
use crate::{Subcommand, directions, no_std, process, repository, tidy};

pub(crate) const SUBCOMMAND: Subcommand = Subcommand {
    name: "check",
    usage: "",
    about: "format, lints, documentation, no_std, directions, tidy",
    run,
};

fn run(arguments: Arguments) -> Result<ExitCode> {
    arguments.finish()?;
    let root = repository::root();
    let mut steps = Steps::default();
    steps.take("format", || format(&root));
    steps.take("tidy", || tidy::check(&root));
    steps.take("directions", || directions::check(&root));
    steps.take("lints", || lints(&root));
    steps.take("documentation", || documentation(&root));
    steps.take("no_std", || no_std::check(&root));
    print!("{}", steps.summary());
    Ok(if steps.all_passed() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn format(root: &Path) -> Result<()> {
    let mut format = process::cargo(root, "fmt");
    format.args(["--all", "--", "--check"]);
    process::run(format)
}

fn lints(root: &Path) -> Result<()> {
    // What only a feature builds is linted after the rest, which is as most will build it.
    for what in [&["--workspace"][..], &["--package", "tollgate-cli", "--features", "otlp"]] {
        let mut clippy = process::cargo(root, "clippy");
        clippy.args(what).args(["--all-targets", "--", "--deny", "warnings"]);
        process::run(clippy)?;
    }
    Ok(())
}

fn documentation(root: &Path) -> Result<()> {
    let mut document = process::cargo(root, "doc");
    // Libraries only: the pages of the library and of the tool, both named `tollgate`, would lie on
    // each other.
    document.args(["--workspace", "--no-deps", "--lib"]);
    document.env("RUSTDOCFLAGS", "-Dwarnings");
    process::run(document)
}
