//! `tollgate check`: one question, from the command line.

mod daemon;
mod data;
mod question;
mod report;

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
    let answer = match (runtime.block_on(daemon::ask(&arguments.url, &question))?, &arguments.data)
    {
        (Asked::Answered(answer), _) => answer,
        (Asked::Unreachable(_), Some(data)) => {
            data::decide(data, arguments.config.as_deref(), &question)?
        }
        (Asked::Unreachable(why), None) => {
            return Err(anyhow!(
                "no tollgate answers at {} ({why}); start one with `tollgate serve`, or say where \
                 it is with --url",
                arguments.url
            ));
        }
    };
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
