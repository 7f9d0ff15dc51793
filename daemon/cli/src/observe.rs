//! `tollgate observe`: usage of keys that an application counts by itself in Redis.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, anyhow, bail};
use clap::Args;
use tollgate::masked_url;
use tollgate_daemon::{Config, ConfigErrors, Layers};
use tollgate_insight::{CounterPattern, ObserveOptions, Observer};

use crate::output;
use crate::serve::{Signals, Tracing, run_async};

/// Record the usage of keys that an application counts by itself in Redis
///
/// Reads the counters of the application, such as {user:42}:17, when they change. Records totals and
/// timelines per key as `track` does, so that `tollgate keys`, `tollgate inspect` and the dashboard show
/// them. Needs notify-keyspace-events with K, $ and x. Of several observers, one counts, and the others
/// stand by. Stops on SIGINT and SIGTERM, and prints what it has counted and may have missed.
#[derive(Args, Debug)]
pub(crate) struct Observe {
    /// The policy with `track` under which the keys are recorded
    policy: String,
    /// The configuration file with the policy and the store
    #[arg(long, value_name = "FILE", env = "TOLLGATE_CONFIG")]
    config: PathBuf,
    /// The names of the counters: KEY is the key and * the window
    #[arg(long, value_name = "PATTERN", default_value = "{KEY}:*")]
    counters: CounterPattern,
    /// Write nothing beside the counters, only Tollgate's own keys
    #[arg(long)]
    read_only: bool,
    /// The store, in place of the file's
    #[arg(long, value_name = "URL")]
    store: Option<String>,
    /// The prefix of all of Tollgate's keys, in place of the file's
    #[arg(long, value_name = "NAME")]
    namespace: Option<String>,
}

pub(crate) fn run(arguments: &Observe) -> Result<ExitCode> {
    let config = load(arguments)?;
    run_async(&config.log.clone(), &Tracing::Off, async |_| observe(arguments, &config).await)
}

/// Loads the file, the environment and the flags; later ones override earlier ones.
fn load(arguments: &Observe) -> Result<Config, ConfigErrors> {
    let layers = Layers::new().file(&arguments.config).environment(std::env::vars_os());
    let flags = [
        ("--store", "store.url", &arguments.store),
        ("--namespace", "namespace", &arguments.namespace),
    ];
    let set =
        flags.into_iter().filter_map(|(flag, field, value)| Some((flag, field, value.as_ref()?)));
    let layers = set.fold(layers, |layers, (flag, field, value)| layers.flag(flag, field, value));
    Ok(layers.read()?.into_config())
}

async fn observe(arguments: &Observe, config: &Config) -> Result<()> {
    let Observe { policy, counters, read_only, .. } = arguments;
    let Some(track) = config.tracks.get(policy).filter(|track| track.usage) else {
        let file = arguments.config.display();
        bail!("policy {policy:?} in {file} tracks no usage; add track: {{ usage: true }} to it");
    };
    // Before the first message says that it runs.
    let signals = Signals::listen()?;
    let store = config.store.open_redis(&config.namespace)?;
    let options = ObserveOptions { pattern: counters.clone(), is_read_only: *read_only };
    let url = masked_url(config.store.url.as_str());
    let observer = Observer::start(store, policy, track, options).await;
    let observer = observer.map_err(|error| anyhow!("{url}: {error}"))?;
    output::print(&format!("observing {counters} at {url} as policy {policy}; Ctrl-C stops\n"))?;
    let report = observer.run(signals.stop_writing()).await;
    output::print(&report.to_string())?;
    Ok(())
}
