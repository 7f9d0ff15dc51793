//! Others' clients, which ask the daemon over RESP and gRPC. Their tests are skipped where one is
//! missing, but in CI those that have a package of Debian must be there; the rest comes from the
//! network alone, which CI may not have.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::{Skipped, debian, on_path};
use crate::process;

/// Has them all, but for those that `skipped` then knows of.
pub(crate) fn clients(root: &Path, skipped: &mut Skipped) -> Result<()> {
    skipped.unless_in_ci("the tests with redis-cli", redis_cli())?;
    skipped.anywhere("the tests with clients in Python", python(root));
    skipped.anywhere("the tests with clients in JavaScript", node(root));
    Ok(())
}

/// It brings `redis-benchmark` too.
pub(crate) fn redis_cli() -> Result<()> {
    debian("redis-cli", "redis-tools")
}

/// What the clients were tried with. `xds-protos` is Envoy's interface as Python modules.
const PYTHON: &[&str] = &[
    "redis==8.1.0",
    "grpcio==1.85.1",
    "grpcio-health-checking==1.85.1",
    "grpcio-reflection==1.85.1",
    "protobuf==7.36.2",
    "xds-protos==1.85.0",
];

/// Fails unless each package is there in its version and can be loaded by this Python, which a
/// compiled one built for another cannot.
const LOADS: &str = "
import sys
from importlib.metadata import version
for pin in sys.argv[1:]:
    name, wanted = pin.split('==')
    assert version(name) == wanted, pin
import redis, grpc, grpc_health.v1.health_pb2, grpc_reflection.v1alpha.reflection_pb2
import envoy.service.ratelimit.v3.rls_pb2
";

fn python(root: &Path) -> Result<()> {
    let folder = root.join("target/tools/python");
    let mut loads = Command::new("python3");
    loads.args(["-c", LOADS]).args(PYTHON).env("PYTHONPATH", &folder);
    if process::output(loads).is_ok() {
        return Ok(());
    }
    debian("python3", "python3-pip")?;
    let mut install = Command::new("python3");
    // Those of another version that lie there already would be kept otherwise.
    install.args(["-m", "pip", "install", "--quiet", "--upgrade", "--target"]);
    install.arg(&folder).args(PYTHON);
    process::run(install).context("clients in Python cannot be installed")
}

/// Two lines of the same client are in use, which greet a server differently.
const NODE: &[(&str, &str)] = &[("ioredis5", "5.11.1"), ("ioredis6", "6.0.0")];

fn node(root: &Path) -> Result<()> {
    let folder = root.join("target/tools/node");
    let is_there = |(name, version): &(&str, &str)| {
        let package = folder.join("node_modules").join(name).join("package.json");
        let text = std::fs::read_to_string(package).unwrap_or_default();
        text.contains(&format!("\"version\": \"{version}\""))
    };
    if on_path("node") && NODE.iter().all(is_there) {
        return Ok(());
    }
    if !on_path("npm") {
        debian("npm", "npm")?;
    }
    let mut install = Command::new("npm");
    install.args(["install", "--no-audit", "--no-fund", "--loglevel", "error", "--prefix"]);
    install.arg(&folder);
    install.args(NODE.iter().map(|(name, version)| format!("{name}@npm:ioredis@{version}")));
    process::run(install).context("clients in JavaScript cannot be installed")
}
