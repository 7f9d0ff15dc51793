//! `tollgate bench`: a load test.

mod address;
mod arguments;
mod json;
mod plan;
mod progress;
mod table;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};
use tollgate_load::{EndReason, Endpoint, Outcome, Plan, Progress, Runner};

pub(crate) use arguments::Bench;
use progress::ProgressLine;

use crate::arguments::Form;
use crate::output;

/// The exit codes after a violation, after a signal, and when the target stopped responding.
const VIOLATION: u8 = 1;
const INTERRUPTED: u8 = 130;
const TARGET_GONE: u8 = 2;

/// How often the progress line is updated.
const TICK: Duration = Duration::from_secs(1);

pub(crate) fn run(arguments: &Bench) -> Result<ExitCode> {
    let plan = plan::plan(arguments)?;
    let runner = Runner::new(plan.clone())?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let outcome = runtime.block_on(run_with_progress(runner))?;
    match arguments.output {
        Form::Json => output::print(&format!("{}\n", json::report(&plan, &outcome)))?,
        Form::Text => output::print(&table::report(&plan, &outcome))?,
    }
    Ok(exit_code(&plan, &outcome))
}

/// Runs the plan on its own threads, shows the progress, and stops it after a signal.
async fn run_with_progress(runner: Runner) -> Result<Outcome> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let (stop_sender, stop) = watch::channel(false);
    let progress = Arc::new(Progress::default());
    let shown = Arc::clone(&progress);
    let mut running = tokio::task::spawn_blocking(move || runner.run(&progress, &stop));
    let mut line = ProgressLine::new();
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    ticks.tick().await;
    let done = loop {
        tokio::select! {
            done = &mut running => break done,
            _ = interrupt.recv() => stop_or_exit(&stop_sender),
            _ = terminate.recv() => stop_or_exit(&stop_sender),
            _ = ticks.tick() => line.tick(&shown),
        }
    };
    line.clear();
    Ok(done??)
}

/// The first signal stops the run, the second ends the process.
fn stop_or_exit(stop: &watch::Sender<bool>) {
    if stop.send_replace(true) {
        std::process::exit(INTERRUPTED.into());
    }
}

fn exit_code(plan: &Plan, outcome: &Outcome) -> ExitCode {
    let verification = outcome.verification.as_ref();
    let has_violations = verification.is_some_and(|found| found.verdict.violations > 0);
    match outcome.end {
        EndReason::Interrupted => ExitCode::from(INTERRUPTED),
        _ if has_violations => ExitCode::from(VIOLATION),
        EndReason::TargetGone => {
            let address = plan.target.endpoint().map_or("memory".to_owned(), Endpoint::address);
            output::print_error(&format!("error: {address} stopped responding\n"));
            ExitCode::from(TARGET_GONE)
        }
        EndReason::Finished if outcome.responses() == 0 => {
            output::print_error("error: no response arrived\n");
            ExitCode::from(TARGET_GONE)
        }
        EndReason::Finished => ExitCode::SUCCESS,
    }
}
