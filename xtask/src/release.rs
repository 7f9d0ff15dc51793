//! `cargo xtask release`: what must hold before a version is published, beyond the checks and
//! tests of each commit. It publishes nothing.

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail, ensure};

use crate::arguments::Arguments;
use crate::deps::Skipped;
use crate::package::package;
use crate::published::{Published, published, workspace_field};
use crate::steps::Steps;
use crate::{Subcommand, deps, process, repository};

pub(crate) const SUBCOMMAND: Subcommand = Subcommand {
    name: "release",
    usage: "",
    about: "names, compiled packages, API changes since the last tag, and the SBOM of a release; publishes nothing",
    run,
};

/// The tags of releases.
const TAGS: &str = "v[0-9]*";

fn run(arguments: Arguments) -> Result<ExitCode> {
    arguments.finish()?;
    let root = repository::root();
    let crates = published(&root)?;
    let mut skipped = Skipped::default();
    let mut steps = Steps::default();
    steps.run("repository", || repository_is_public(&root));
    steps.run("changelog", || changelog(&root));
    steps.run("names", || names(&root, &crates));
    // Compiles each package on its own, against the packages that it needs.
    steps.run("packages", || process::run(package(&root, &crates)));
    steps.run("semver", || semver(&root, &crates, &mut skipped));
    steps.run("SBOM", || sbom(&root));
    print!("{}{}", steps.summary(), skipped.summary());
    Ok(if steps.all_passed() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The address in the manifests, which pages of the registry link to.
fn repository_is_public(root: &Path) -> Result<()> {
    let repository = workspace_field(root, "repository")?;
    ensure!(
        !repository.contains("example.com"),
        "repository in Cargo.toml is {repository}, a placeholder; set it to the public address"
    );
    Ok(())
}

/// The release notes are the section of the version.
fn changelog(root: &Path) -> Result<()> {
    let version = workspace_field(root, "version")?;
    let changelog = fs::read_to_string(root.join("CHANGELOG.md"))?;
    ensure!(
        changelog.lines().any(|line| line.starts_with(&format!("## [{version}]"))),
        "CHANGELOG.md has no section [{version}]"
    );
    Ok(())
}

/// Fails if the registry has a crate of another project under the name of one of ours.
fn names(root: &Path, crates: &[Published]) -> Result<()> {
    let repository = workspace_field(root, "repository")?;
    let mut taken = Vec::new();
    for Published { name, .. } in crates {
        let mut info = process::cargo(root, "info");
        info.args(["--color", "never", "--registry", "crates-io", name]);
        let owner = match process::output(info) {
            Ok(found) => owner(&found),
            Err(error) if format!("{error:#}").contains("could not find") => continue,
            Err(error) => return Err(error),
        };
        if owner != repository {
            println!("{name} belongs to {owner}");
            taken.push(&**name);
        }
    }
    ensure!(taken.is_empty(), "the registry has crates of others: {}", taken.join(", "));
    Ok(())
}

/// The repository of a crate that `cargo info` shows.
fn owner(info: &str) -> String {
    let mut lines = info.lines();
    let owner = lines.find_map(|line| line.strip_prefix("repository: "));
    owner.unwrap_or("another project").to_owned()
}

/// Changes of the libraries' interfaces since the last release that its version does not permit.
fn semver(root: &Path, crates: &[Published], skipped: &mut Skipped) -> Result<()> {
    let mut describe = Command::new("git");
    describe.current_dir(root).args(["describe", "--tags", "--abbrev=0", "--match", TAGS]);
    let Ok(tag) = process::output(describe) else {
        let reason = anyhow::anyhow!("there is no tag {TAGS}: nothing has been released");
        skipped.note("the comparison of interfaces with the last release", Err(reason));
        return Ok(());
    };
    deps::cargo_semver_checks(root)?;
    let mut check = process::cargo(root, "semver-checks");
    check.args(["--baseline-rev", tag.trim(), "--all-features"]);
    for library in crates.iter().filter(|published| published.is_library()) {
        check.args(["--package", &library.name]);
    }
    process::run(check)
}

/// Where the software bill of materials of the binary is written.
const SBOM: &str = "target/sbom/tollgate.cdx.json";

/// The dependencies of the binary in CycloneDX's format.
fn sbom(root: &Path) -> Result<()> {
    deps::cargo_cyclonedx(root)?;
    let mut cyclonedx = process::cargo(root, "cyclonedx");
    cyclonedx.args(["--manifest-path", "daemon/cli/Cargo.toml", "--features", "otlp"]);
    cyclonedx.args(["--format", "json", "--spec-version", "1.5"]);
    cyclonedx.args(["--override-filename", "sbom-of-tollgate"]);
    process::run(cyclonedx)?;
    // One file is written beside the manifest of each member of the workspace.
    let mut written = None;
    for name in repository::files(root)? {
        if name.ends_with("/sbom-of-tollgate.json") {
            let text = fs::read_to_string(root.join(&name))?;
            fs::remove_file(root.join(&name))?;
            if name.starts_with("daemon/cli/") {
                written = Some(text);
            }
        }
    }
    let text = written.context("cargo cyclonedx has written no file for the binary")?;
    if !text.contains("\"tollgate-algorithms\"") {
        bail!("the SBOM lacks tollgate-algorithms");
    }
    let path = root.join(SBOM);
    fs::create_dir_all(path.parent().context("a folder")?)?;
    fs::write(&path, text)?;
    println!("wrote {SBOM}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owner_of_a_crate_is_its_repository() {
        let info = "a #b\nText.\nversion: 1.0.0\nrepository: https://git.example.com/a\n";
        assert_eq!(owner(info), "https://git.example.com/a");
        assert_eq!(owner("a\nversion: 1.0.0\n"), "another project");
    }
}
