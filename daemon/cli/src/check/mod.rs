//! `tollgate check` and `tollgate peek`: one check from the command line.

mod report;
mod request;
mod store;

use std::process::ExitCode;

use anyhow::{Result, anyhow};

use crate::arguments::{Check, Form};
use crate::client::{Client, Reply};
use crate::output;
use report::Report;
use request::CheckRequest;

/// The exit code of a denial.
const DENIED: u8 = 1;

/// Whether to charge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Check,
    Peek,
}

pub(crate) fn run(arguments: &Check, mode: Mode) -> Result<ExitCode> {
    let request = CheckRequest::new(arguments, mode)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let decision = runtime.block_on(decide(arguments, &request))?;
    let report = Report::parse(&decision)?;
    match arguments.output {
        Form::Json => output::print(&format!("{decision}\n"))?,
        Form::Text => {
            let unused = (mode == Mode::Peek && report.is_unused()).then_some(
                "nothing is counted for this key: it has not been seen, or has recovered",
            );
            output::print_hint(report.hint.as_deref().or(unused));
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
    let client = Client::new(&arguments.daemon)?;
    match (client.post(request.path(), request.json()).await?, &arguments.data) {
        (Reply::Response(decision), _) => Ok(decision),
        (Reply::Unreachable(_), Some(data)) => store::decide_with_data(data, config, request),
        (Reply::Unreachable(error), None) => Err(anyhow!(
            "no daemon at {} ({error}); start one with `tollgate serve`, set --url to its URL, or \
             set --store to a store",
            arguments.daemon.url
        )),
    }
}
