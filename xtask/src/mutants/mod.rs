//! `cargo xtask mutants`: applies one breaking patch at a time to a copy of the tree and checks
//! that the tests fail.

mod patch;
mod scratch;
mod trial;

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, ensure};

use self::patch::Patch;
use self::scratch::Scratch;
use self::trial::{Baseline, Verdict};
use crate::arguments::Arguments;
use crate::process::Stopwatch;
use crate::{Subcommand, deps, repository};

pub(crate) const SUBCOMMAND: Subcommand = Subcommand {
    name: "mutants",
    usage: "[FILTER] [--list]",
    about: "check that the tests catch each patch of xtask/mutants",
    run,
};

/// The shortest time after which a patched test run counts as hung.
const MIN_HANG_TIME: Duration = Duration::from_secs(60);

fn run(mut arguments: Arguments) -> Result<ExitCode> {
    let list = arguments.flag("--list");
    // Every name contains the empty filter.
    let filter = arguments.positional().unwrap_or_default();
    arguments.finish()?;
    let root = repository::root();
    if list {
        for patch in selected(&root, &filter)? {
            println!("{}: {}\n    {}", patch.name, patch.breaks, patch.command);
        }
        return Ok(ExitCode::SUCCESS);
    }
    deps::programs(&["git"])?;
    check(&root, &filter)?;
    Ok(ExitCode::SUCCESS)
}

/// Tries every patch whose name contains `filter`; an error unless all are caught.
pub(crate) fn check(root: &Path, filter: &str) -> Result<()> {
    let verdicts = verdicts(root, filter, MIN_HANG_TIME)?;
    let caught = verdicts.iter().filter(|(_, verdict)| verdict.is_caught()).count();
    println!("{caught} of {} mutants caught", verdicts.len());
    ensure!(caught == verdicts.len(), "{} mutants missed or stale", verdicts.len() - caught);
    Ok(())
}

fn selected(root: &Path, filter: &str) -> Result<Vec<Patch>> {
    let mut patches = patch::read_all(&root.join("xtask/mutants"))?;
    patches.retain(|patch| patch.name.contains(filter));
    ensure!(!patches.is_empty(), "no patch in xtask/mutants has a name with '{filter}'");
    Ok(patches)
}

fn verdicts(root: &Path, filter: &str, min_hang_time: Duration) -> Result<Vec<(String, Verdict)>> {
    let patches = selected(root, filter)?;
    let scratch = Scratch::prepare(root)?;
    let mut baseline = Baseline::new(min_hang_time);
    for patch in &patches {
        baseline.measure(&scratch, &patch.command)?;
    }
    let mut verdicts = Vec::new();
    for patch in patches {
        let stopwatch = Stopwatch::start();
        let verdict = trial::try_patch(&scratch, &patch, &baseline)?;
        let seconds = stopwatch.elapsed().as_secs();
        println!("{:<6} {seconds:>4} s  {}: {}", verdict.word(), patch.name, patch.breaks);
        if let Some(details) = verdict.details() {
            println!("{}", indented(details));
        }
        verdicts.push((patch.name, verdict));
    }
    Ok(verdicts)
}

fn indented(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(|line| format!("               {line}")).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests;
