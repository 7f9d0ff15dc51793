//! Counts the instructions and the allocations of a path.

use std::alloc::System;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use stats_alloc::{Region, StatsAlloc};

use crate::counts::{self, Count};

/// A hot path.
#[derive(Debug)]
pub(crate) struct Path {
    pub(crate) name: &'static str,
    pub(crate) prepare: fn() -> Result<Work>,
}

/// A call, and how many operations it executes. It fails if a result is not the expected one.
pub(crate) struct Work {
    pub(crate) call: Box<dyn FnMut() -> Result<()>>,
    pub(crate) operations: usize,
}

/// Followed by the name of a path, executes that path in this process.
const PATH_FLAG: &str = "--path";

/// The path after [`PATH_FLAG`], if this program is started with it.
pub(crate) fn chosen(paths: &'static [Path]) -> Option<&'static Path> {
    let name = std::env::args().skip_while(|arg| arg != PATH_FLAG).nth(1)?;
    paths.iter().find(|path| path.name == name)
}

/// The operations that are counted, at least.
const OPERATIONS: usize = 6_400;

/// Executes a path, and prints its operations and allocations.
pub(crate) fn run(path: &Path, allocator: &'static StatsAlloc<System>) -> Result<()> {
    // The number of shards of a table depends on it.
    let cpus = std::thread::available_parallelism()?.get();
    ensure!(
        cpus == 2,
        "the counts are those of 2 CPUs, not of {cpus}: run them where CPUs 0 and 1 are available"
    );
    let mut work = (path.prepare)()?;
    let calls = OPERATIONS.div_ceil(work.operations);
    // Keys become known, and buffers reach their size.
    for _ in 0..calls {
        (work.call)()?;
    }
    let region = Region::new(allocator);
    counted_by_callgrind(&mut work, calls)?;
    let change = region.change();
    println!("{} {}", calls * work.operations, change.allocations + change.reallocations);
    Ok(())
}

/// The only function whose instructions callgrind counts, with those that it calls.
#[inline(never)]
fn counted_by_callgrind(work: &mut Work, calls: usize) -> Result<()> {
    for _ in 0..calls {
        (work.call)()?;
    }
    Ok(())
}

/// Counts a path in a process of its own.
pub(crate) fn measure(path: &Path) -> Result<Count> {
    let mut callgrind = Command::new("taskset");
    callgrind.args(["-c", "0,1", "valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]);
    callgrind.arg("--toggle-collect=*counted_by_callgrind*");
    callgrind.arg(std::env::current_exe()?).args([PATH_FLAG, path.name]);
    let output = callgrind.output().context("cannot start taskset; install util-linux")?;
    let [stdout, stderr] =
        [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    ensure!(output.status.success(), "{}: {stdout}{stderr}", path.name);
    let collected = stderr.lines().find_map(|line| line.split_once("Collected :"));
    let instructions: u64 = collected
        .and_then(|(_, count)| count.trim().parse().ok())
        .with_context(|| format!("{}: no count in {stderr}", path.name))?;
    let (operations, allocations) = stdout
        .trim()
        .split_once(' ')
        .and_then(|(operations, allocations)| {
            Some((operations.parse::<u64>().ok()?, allocations.parse::<u64>().ok()?))
        })
        .with_context(|| format!("{}: no numbers in {stdout}", path.name))?;
    let count = Count {
        name: path.name.to_owned(),
        instructions: instructions / operations,
        allocations: (allocations + operations / 2) / operations,
    };
    println!("{}", counts::line(&count));
    Ok(count)
}
