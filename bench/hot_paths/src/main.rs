//! Instructions and allocations of the hot paths, beside the counts in the repository.
//!
//! Callgrind counts the instructions of each path in a process of its own. A count that differs
//! by more than a tolerance, and any difference of the allocations, fails the run;
//! `UPDATE=1` records the new counts. Counts are of one architecture, hence one file for each.
#![expect(clippy::print_stdout, reason = "it prints what it measured")]

mod counts;
mod daemon;
mod measure;
mod memory;

use std::alloc::System;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, ensure};
use counts::Recorded;
use measure::Path;
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const PATHS: &[Path] = &[
    Path { name: "memory, allowed", prepare: memory::allowed },
    Path { name: "memory, denied", prepare: memory::denied },
    Path { name: "memory, new key", prepare: memory::new_key },
    Path { name: "memory, three limits", prepare: memory::three_limits },
    Path { name: "memory, batch of 64 checks", prepare: memory::check_each },
    Path { name: "memory, batch of 64 checks of 10,000 keys", prepare: memory::check_each_of_many },
    Path { name: "memory, batch of 64 requests", prepare: memory::batch },
    Path { name: "memory, 3 checks in one request", prepare: memory::three_checks },
    Path { name: "memory, 32 checks in one request", prepare: memory::many_checks },
    Path { name: "RESP, CL.THROTTLE in a pipeline of 32", prepare: daemon::throttle },
    Path { name: "RESP, TOLLGATE.CHECK in a pipeline of 32", prepare: daemon::resp_check },
    Path { name: "HTTP, POST /v1/check", prepare: daemon::http_check },
    Path { name: "gRPC, ShouldRateLimit", prepare: daemon::should_rate_limit },
];

/// The counts of this architecture.
fn file() -> PathBuf {
    let folder = env!("CARGO_MANIFEST_DIR");
    PathBuf::from(format!("{folder}/{}.txt", std::env::consts::ARCH))
}

fn main() -> Result<ExitCode> {
    if let Some(path) = measure::chosen(PATHS) {
        measure::run(path, ALLOCATOR)?;
        return Ok(ExitCode::SUCCESS);
    }
    let counts = PATHS.iter().map(measure::measure).collect::<Result<Vec<_>>>()?;
    let file = file();
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&file, counts::format(&counts))?;
        return Ok(ExitCode::SUCCESS);
    }
    ensure!(
        file.is_file(),
        "{} does not exist; UPDATE=1 cargo xtask bench hot_paths writes it",
        file.display()
    );
    let recorded = Recorded::parse(&std::fs::read_to_string(&file)?)?;
    let differences = recorded.differences(&counts);
    for difference in &differences {
        println!("{difference}");
    }
    if differences.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    println!("If this is intended, record it: UPDATE=1 cargo xtask bench hot_paths");
    Ok(ExitCode::FAILURE)
}
