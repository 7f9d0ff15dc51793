//! `cargo xtask check`: every check of the source that does not run it.

use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, ensure};

use crate::arguments::Arguments;
use crate::deps::Skipped;
use crate::steps::Steps;
use crate::{Subcommand, book, deps, no_std, package, process, repository, tidy};

pub(crate) const SUBCOMMAND: Subcommand = Subcommand {
    name: "check",
    usage: "[STEP]",
    about: "format, spelling, links, book, workflows, lints, features, dependencies, documentation, packages, no_std, tidy",
    run,
};

fn run(mut arguments: Arguments) -> Result<ExitCode> {
    let only = arguments.positional();
    arguments.finish()?;
    let root = repository::root();
    deps::programs(&["git"])?;
    deps::cargo_deny(&root)?;
    let tools = deps::text_checkers(&root)?;
    let mut skipped = Skipped::default();
    let mut steps = Steps::only(only);
    steps.run("format", || format(&root));
    steps.run("tidy", || tidy::check(&root));
    steps.run("spelling", || spelling(&root, &tools));
    steps.run("links", || links(&root, &tools));
    steps.run("book", || book(&root, &tools, &mut skipped));
    steps.run("workflows", || workflows(&root, &mut skipped));
    steps.run("dependencies", || dependencies(&root, &mut skipped));
    steps.run("lints", || lints(&root));
    steps.run("features", || package::check_features(&root));
    steps.run("documentation", || documentation(&root));
    steps.run("packages", || package::assemble(&root));
    steps.run("no_std", || no_std::check(&root));
    ensure!(!steps.is_empty(), "no such step");
    print!("{}{}", steps.summary(), skipped.summary());
    Ok(if steps.all_passed() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn format(root: &Path) -> Result<()> {
    let mut format = process::cargo(root, "fmt");
    format.args(["--all", "--", "--check"]);
    process::run(format)
}

/// Spelling, and the words that `_typos.toml` rejects.
fn spelling(root: &Path, tools: &Path) -> Result<()> {
    let mut typos = Command::new(tools.join("typos"));
    typos.current_dir(root).args(["--format", "brief", "--hidden"]);
    process::run(typos)
}

/// Links of the documents to files and headings. Addresses on the network are not requested.
fn links(root: &Path, tools: &Path) -> Result<()> {
    let documents = repository::files(root)?.into_iter().filter(|name| name.ends_with(".md"));
    let mut lychee = Command::new(tools.join("lychee"));
    lychee.current_dir(root).args(["--offline", "--include-fragments", "--no-progress", "--"]);
    lychee.args(documents);
    process::run(lychee)
}

/// Builds the book and checks its links, which differ from those of the pages.
fn book(root: &Path, tools: &Path, skipped: &mut Skipped) -> Result<()> {
    let installed = deps::mdbook(root);
    let is_installed = installed.is_ok();
    skipped.note("the book of the documentation", installed);
    if is_installed { book::check(root, &tools.join("lychee")) } else { Ok(()) }
}

/// The workflows of GitHub, and the shell commands in them.
fn workflows(root: &Path, skipped: &mut Skipped) -> Result<()> {
    let actionlint = deps::programs(&["shellcheck"]).and_then(|()| deps::ACTIONLINT.install(root));
    let checked = match &actionlint {
        Ok(program) => {
            let mut actionlint = Command::new(program);
            actionlint.current_dir(root);
            process::run(actionlint)
        }
        Err(_) => Ok(()),
    };
    skipped.note("the check of the workflows", actionlint.map(drop));
    checked
}

fn dependencies(root: &Path, skipped: &mut Skipped) -> Result<()> {
    let mut deny = process::cargo(root, "deny");
    deny.args(["--locked", "check", "--hide-inclusion-graph", "bans", "licenses", "sources"]);
    process::run(deny)?;

    let mut fetch = process::cargo(root, "deny");
    fetch.args(["--locked", "fetch", "db"]);
    let fetched = process::run(fetch).context("the advisory database cannot be fetched");
    if fetched.is_ok() {
        let mut deny = process::cargo(root, "deny");
        deny.args(["--locked", "check", "--disable-fetch", "advisories"]);
        process::run(deny)?;
    }
    skipped.note("security advisories of dependencies", fetched);
    Ok(())
}

fn lints(root: &Path) -> Result<()> {
    // The default build comes first; code behind the feature `otlp` is linted after it.
    for features in [&[][..], &["--features", "tollgate-cli/otlp"]] {
        let mut clippy = process::cargo(root, "clippy");
        clippy.arg("--workspace").args(features);
        clippy.args(["--all-targets", "--", "--deny", "warnings"]);
        process::run(clippy)?;
    }
    Ok(())
}

fn documentation(root: &Path) -> Result<()> {
    let mut document = process::cargo(root, "doc");
    // Libraries only: the library and the binary are both named `tollgate` and would overwrite each
    // other's pages.
    document.args(["--workspace", "--no-deps", "--lib"]);
    document.env("RUSTDOCFLAGS", "-Dwarnings");
    process::run(document)
}
