//! `tollgate top`: the rates of policies and keys in the terminal.

mod draw;
mod rates;
mod reading;
mod rows;
mod screen;
mod view;

#[cfg(test)]
mod tests;

use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use serde_json::json;
use tokio::time::sleep;

use crate::arguments::{Daemon, Form, Token};
use crate::client::Client;
use crate::output;
use crate::top::reading::read;
use crate::top::rows::{Item, Row};
use crate::top::view::View;

/// Watch the rates of policies and keys in the terminal
///
/// Reads the API of the dashboard once a second. Rates are averages over 5 seconds. Keys are listed
/// under policies with `track`.
#[derive(Args, Debug)]
pub(crate) struct Top {
    /// The policy whose keys are listed; without it, the busiest one with `track`
    policy: Option<String>,
    /// Measure for 2 seconds, print the rates and exit
    #[arg(long)]
    once: bool,
    /// The URL of the daemon's dashboard: http://HOST:PORT or unix:PATH
    #[arg(long, default_value = "http://127.0.0.1:9090")]
    url: String,
    #[command(flatten)]
    token: Token,
    /// The output format of --once
    #[arg(short, long, value_name = "FORMAT", default_value = "text", requires = "once")]
    output: Form,
}

/// The seconds that `--once` measures for, at least.
const ONCE_SECONDS: f64 = 2.0;
/// The delay between two readings of `--once`, shorter than the interval of the daemon's samples.
const ONCE_DELAY: Duration = Duration::from_millis(500);

pub(crate) fn run(arguments: Top) -> Result<ExitCode> {
    let Top { policy, once, url, token, output } = arguments;
    if !once && !io::stdout().is_terminal() {
        bail!("standard output is not a terminal; add --once");
    }
    let daemon = Daemon { url: url.clone(), token };
    let client = Client::new(&daemon)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let overview = reading::overview(&client).await;
        let overview = overview
            .with_context(|| format!("cannot read the dashboard at {url}, which --url sets"))?;
        if let Some(policy) = &policy {
            let is_known = overview.policies.iter().any(|known| known.name == *policy);
            ensure!(is_known, "the daemon at {url} has no policy {policy:?}");
        }
        let view = View::new(url, overview, policy);
        match once {
            true => print_once(view, &client, output).await,
            false => screen::show(view, client).await,
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Prints what the view shows.
async fn print_once(mut view: View, client: &Client, output: Form) -> Result<()> {
    while view.policy_rates.seconds() < ONCE_SECONDS {
        sleep(ONCE_DELAY).await;
        view.apply(read(client, view.subject()).await);
        if let Some(error) = view.failure {
            bail!("{error}");
        }
    }
    if let Err(error) = &view.keys {
        output::print_hint(Some(error));
    }
    let (policies, keys) = (view.policy_rows(), view.key_rows());
    let text = match output {
        Form::Json => {
            let policies: Vec<_> = policies.iter().map(Row::json).collect();
            let keys: Vec<_> = keys.iter().map(Row::json).collect();
            json!({ "policies": policies, "policy": view.policy(), "keys": keys }).to_string()
                + "\n"
        }
        Form::Text => {
            let policies = table(&policies, view.overview.time);
            format!("{policies}\nkeys of {}\n{}", view.policy(), table(&keys, view.overview.time))
        }
    };
    Ok(output::print(&text)?)
}

/// Rows in columns, below their headers.
fn table<T: Item>(rows: &[Row<'_, T>], now: f64) -> String {
    let headers = [T::HEADERS.map(str::to_owned)];
    let rows: Vec<_> = headers.into_iter().chain(rows.iter().map(|row| row.cells(now))).collect();
    output::table(&rows)
}
