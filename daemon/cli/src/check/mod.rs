//! `tollgate check`: one check from the command line.

mod daemon;
mod report;
mod request;
mod store;

use std::process::ExitCode;

use anyhow::{Result, anyhow};

use crate::arguments::{Check, Form};
use crate::output;
use daemon::Response;
use report::Report;
use request::CheckRequest;

/// The exit code of a denial.
const DENIED: u8 = 1;

pub(crate) fn run(arguments: &Check) -> Result<ExitCode> {
    let request = CheckRequest::new(arguments)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let decision = runtime.block_on(decide(arguments, &request))?;
    let report = Report::parse(&decision)?;
    match arguments.output {
        Form::Json => output::print(&format!("{decision}\n"))?,
        Form::Text => {
            let text = report.text(&request, arguments.explain, output::has_colours());
            output::print(&text)?;
        }
    }
    Ok(if report.allowed { ExitCode::SUCCESS } else { ExitCode::from(DENIED) })
}

/// Decides with --store, the daemon or --data, in this order. Returns the decision as JSON.
async fn decide(arguments: &Check, request: &CheckRequest) -> Result<String> {
    let config = arguments.config.as_deref();
    if let Some(url) = &arguments.store {
        return store::decide_with_store(url, arguments.namespace.as_deref(), config, request)
            .await;
    }
    if config.is_some() && arguments.data.is_none() {
        return Err(anyhow!(
            "--config needs --store or --data; a daemon has its own configuration"
        ));
    }
    match (daemon::check(&arguments.url, request).await?, &arguments.data) {
        (Response::Decision(decision), _) => Ok(decision),
        (Response::Unreachable(_), Some(data)) => store::decide_with_data(data, config, request),
        (Response::Unreachable(error), None) => Err(anyhow!(
            "no daemon at {} ({error}); start one with `tollgate serve`, set --url to its URL, or \
             set --store to a store",
            arguments.url
        )),
    }
}
