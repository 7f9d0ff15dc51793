//! Describes the machine of a run.

use std::fs;
use std::process::Command;
use std::thread;

use anyhow::{Context, Result, ensure};

/// The processor, the kernel, the commit, and the load before the run.
///
/// # Errors
/// The system is not Linux, or git is missing.
pub fn describe() -> Result<String> {
    let info = fs::read_to_string("/proc/cpuinfo")?;
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    // Processors of ARM have no name.
    let model = model.map_or(std::env::consts::ARCH, |(_, name)| name);
    let cores = thread::available_parallelism()?;
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease")?;
    let load = fs::read_to_string("/proc/loadavg")?;
    let load = load.split_whitespace().next().context("loadavg is empty")?;
    Ok(format!(
        "Commit {}, {cores} cores of {model}, Linux {}, load average {load} before the run",
        commit()?,
        kernel.trim()
    ))
}

/// The short hash and the date of the commit.
fn commit() -> Result<String> {
    let mut git = Command::new("git");
    git.args(["log", "-1", "--format=`%h` of %cs"]).current_dir(env!("CARGO_MANIFEST_DIR"));
    let output = git.output().context("cannot start git")?;
    ensure!(output.status.success(), "git: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
