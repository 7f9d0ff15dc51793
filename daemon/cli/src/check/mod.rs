//! `tollgate check`: one question, from the command line.

mod daemon;
mod data;
mod question;
mod report;
mod store;

use std::process::ExitCode;

use anyhow::{Result, anyhow};

use crate::arguments::{Check, Form};
use crate::output;
use daemon::Asked;
use question::Question;
use report::Report;

/// What a denial exits with.
const DENIED: u8 = 1;

pub(crate) fn run(arguments: &Check) -> Result<ExitCode> {
    let question = Question::of(arguments)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let answer = runtime.block_on(ask(arguments, &question))?;
    let report = Report::read(&answer)?;
    match arguments.output {
        Form::Json => output::print(&format!("{answer}\n"))?,
        Form::Text => {
            let text = report.text(&question, arguments.explain, output::has_colours());
            output::print(&text)?;
        }
    }
    Ok(if report.allowed { ExitCode::SUCCESS } else { ExitCode::from(DENIED) })
}

/// Asks the store if one is named, else the daemon, else the data directory. The answer is JSON.
async fn ask(arguments: &Check, question: &Question) -> Result<String> {
    let config = arguments.config.as_deref();
    if let Some(url) = &arguments.store {
        return store::decide(url, arguments.namespace.as_deref(), config, question).await;
    }
    if config.is_some() && arguments.data.is_none() {
        return Err(anyhow!(
            "--config names the policies of --store or --data; a daemon knows its own"
        ));
    }
    match (daemon::ask(&arguments.url, question).await?, &arguments.data) {
        (Asked::Answered(answer), _) => Ok(answer),
        (Asked::Unreachable(_), Some(data)) => data::decide(data, config, question),
        (Asked::Unreachable(why), None) => Err(anyhow!(
            "no tollgate answers at {} ({why}); start one with `tollgate serve`, say where it is \
             with --url, or name a store with --store",
            arguments.url
        )),
    }
}
