//! Third-party clients that the tests run against the daemon over RESP, gRPC and HTTP. Tests of a missing
//! client are skipped; in CI those with a Debian package must be there, since the other registries
//! may be unreachable.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::{Skipped, on_path, pip_install, programs};
use crate::process;

/// Installs all clients; `skipped` lists those that are not available.
pub(crate) fn clients(root: &Path, skipped: &mut Skipped) -> Result<()> {
    skipped.note_unless_ci("the tests with redis-cli", programs(&["redis-cli"]))?;
    skipped.note("the tests with clients in Python", python(root));
    skipped.note("the tests with clients in JavaScript", node(root));
    skipped.note_unless_ci("the tests of the dashboard", programs(&["chromium"]))?;
    Ok(())
}

/// The tested versions. `xds-protos` contains Envoy's interface as Python modules.
const PYTHON: &[&str] = &[
    "redis==8.1.0",
    "grpcio==1.85.1",
    "grpcio-health-checking==1.85.1",
    "grpcio-reflection==1.85.1",
    "protobuf==7.36.2",
    "xds-protos==1.85.0",
    "Flask==3.1.3",
    "fastapi==0.165.0",
    "uvicorn==0.54.0",
    "Django==5.2.19",
];

/// Fails unless each package is installed in its version and this Python can load it; a compiled
/// package may have been built for another Python.
const LOADS: &str = "
import sys
from importlib.metadata import version
for pin in sys.argv[1:]:
    name, wanted = pin.split('==')
    assert version(name) == wanted, pin
import redis, grpc, grpc_health.v1.health_pb2, grpc_reflection.v1alpha.reflection_pb2
import envoy.service.ratelimit.v3.rls_pb2
import flask, fastapi, uvicorn, django
";

fn python(root: &Path) -> Result<()> {
    let folder = root.join("target/tools/python");
    let mut loads = Command::new("python3");
    loads.args(["-c", LOADS]).args(PYTHON).env("PYTHONPATH", &folder);
    if process::output(loads).is_ok() {
        return Ok(());
    }
    pip_install(&folder, PYTHON)
}

/// The folder, the package and its version. Both major versions of ioredis are in use; they send
/// different handshakes.
const NODE: &[(&str, &str, &str)] = &[
    ("ioredis5", "ioredis", "5.11.1"),
    ("ioredis6", "ioredis", "6.0.0"),
    ("redis", "redis", "6.3.1"),
    ("express", "express", "5.3.0"),
    ("puppeteer-core", "puppeteer-core", "24.43.1"),
    ("axe-core", "axe-core", "4.14.1"),
];

fn node(root: &Path) -> Result<()> {
    let folder = root.join("target/tools/node");
    let is_installed = |(name, _, version): &(&str, &str, &str)| {
        let package = folder.join("node_modules").join(name).join("package.json");
        std::fs::read_to_string(package)
            .is_ok_and(|text| text.contains(&format!("\"version\": \"{version}\"")))
    };
    if on_path("node") && NODE.iter().all(is_installed) {
        return Ok(());
    }
    programs(&["npm"])?;
    let mut install = Command::new("npm");
    install.args(["install", "--no-audit", "--no-fund", "--loglevel", "error", "--prefix"]);
    install.arg(&folder);
    install.args(
        NODE.iter().map(|(name, package, version)| format!("{name}@npm:{package}@{version}")),
    );
    process::run(install).context("cannot install the clients in JavaScript")
}
