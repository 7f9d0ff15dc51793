//! `tollgate bench`: a load, and what a limiter makes of it.

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
use tollgate_load::{Ended, Outcome, Plan, Prepared, Progress};

pub(crate) use arguments::Bench;
use progress::Line;

use crate::arguments::Form;
use crate::output;

/// What a violation exits with, what one who is interrupted does, and where nobody answers any more.
const VIOLATED: u8 = 1;
const INTERRUPTED: u8 = 130;
const GONE: u8 = 2;

const TICK: Duration = Duration::from_secs(1);

pub(crate) fn run(arguments: &Bench) -> Result<ExitCode> {
    let plan = plan::plan(arguments)?;
    let prepared = Prepared::of(plan.clone())?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let outcome = runtime.block_on(watch_over(prepared))?;
    match arguments.output {
        Form::Json => output::print(&format!("{}\n", json::object(&plan, &outcome)))?,
        Form::Text => output::print(&table::table(&plan, &outcome))?,
    }
    Ok(exit_code(&plan, &outcome))
}

/// Runs it on threads of its own; tells how far it is, and passes on a signal.
async fn watch_over(prepared: Prepared) -> Result<Outcome> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let (tell, stop) = watch::channel(false);
    let progress = Arc::new(Progress::default());
    let shown = Arc::clone(&progress);
    let mut running = tokio::task::spawn_blocking(move || prepared.run(&progress, &stop));
    let mut line = Line::new();
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    ticks.tick().await;
    let done = loop {
        tokio::select! {
            done = &mut running => break done,
            _ = interrupt.recv() => stop_or_end(&tell),
            _ = terminate.recv() => stop_or_end(&tell),
            _ = ticks.tick() => line.tick(&shown),
        }
    };
    line.clear();
    Ok(done??)
}

/// The first signal asks it to stop, the second does not ask.
fn stop_or_end(tell: &watch::Sender<bool>) {
    if tell.send_replace(true) {
        std::process::exit(INTERRUPTED.into());
    }
}

fn exit_code(plan: &Plan, outcome: &Outcome) -> ExitCode {
    let is_violated = outcome.held.as_ref().is_some_and(|x| x.verdict.violations > 0);
    match outcome.ended {
        Ended::Interrupted => ExitCode::from(INTERRUPTED),
        _ if is_violated => ExitCode::from(VIOLATED),
        Ended::Gone => {
            let whom = plan.target.peer().map(tollgate_load::Peer::address).unwrap_or_default();
            output::print_error(&format!("error: nobody answers at {whom} any more\n"));
            ExitCode::from(GONE)
        }
        Ended::Finished if outcome.answered() == 0 => {
            output::print_error("error: there was no answer at all\n");
            ExitCode::from(GONE)
        }
        Ended::Finished => ExitCode::SUCCESS,
    }
}
