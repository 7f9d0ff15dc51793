//! `tollgate serve`: the daemon.

mod bind;
mod daemon;
mod greeting;
mod logs;
mod runtime;
mod signals;
mod systemd;
#[cfg(feature = "otlp")]
mod traces;

use std::process::ExitCode;

use anyhow::Result;
use tollgate_daemon::{Config, ConfigError, ConfigErrors, Layers, LoadedConfig, Tls};

use crate::arguments::Serve;
pub(crate) use bind::bind_at;
pub(crate) use daemon::{Daemon, Ready};
use greeting::greeting;
pub(crate) use logs::log_fatal;
pub(crate) use runtime::{Service, Tracing, run_async};
pub(crate) use signals::Signals;

pub(crate) fn run(arguments: Serve) -> Result<ExitCode> {
    let loaded = load(&arguments)?;
    // Before a socket, a store or a file is opened.
    tollgate_daemon::check_files(&loaded)?;
    let warnings = loaded.warnings();
    let has_admin_address = loaded.is_set("listen.admin");
    let config = loaded.into_config();
    let log = config.log.clone();
    run_async(&log, &Tracing::FromEnvironment, async |logs| {
        for warning in warnings {
            tracing::warn!("{warning}");
        }
        let is_sample = arguments.config.is_none() && arguments.limits.is_none();
        let file = arguments.config.clone();
        let tls = config.listen.tls.clone().map(Tls::open).transpose()?;
        let listeners = bind::bind(&config.listen, has_admin_address, tls.as_ref()).await?;
        let read = move || reload(&arguments, tls.as_ref());
        let daemon = Daemon { config, listeners, file, read: Box::new(read) };
        daemon.run(logs, |ready| greeting(&ready, is_sample)).await
    })
}

/// Whether the log is JSON. The configuration may be invalid, so that its file is only searched for
/// the format.
pub(crate) fn logs_json(arguments: &Serve) -> bool {
    if let Some(format) = std::env::var_os("TOLLGATE_LOG__FORMAT") {
        return format == "json";
    }
    let text = arguments.config.as_ref().and_then(|file| std::fs::read_to_string(file).ok());
    let words = text.as_deref().unwrap_or_default().split_once("log:");
    let words = words.map_or("", |(_, log)| log).split([' ', '\n', ',', '{', '}', '"']);
    let mut words = words.filter(|word| !word.is_empty());
    words.find(|word| *word == "format:").is_some_and(|_| words.next() == Some("json"))
}

/// Loads the file, the environment and the flags; later ones override earlier ones.
fn load(arguments: &Serve) -> Result<LoadedConfig, ConfigErrors> {
    let layers = match (&arguments.limits, &arguments.config) {
        (Some(name), _) if name.ends_with(".yaml") || name.ends_with(".yml") => {
            let message = format!("{name:?} is no limit; to read a file, write --config {name}");
            return Err(ConfigError::new(message).into());
        }
        (Some(limits), _) => Layers::new().limits(limits),
        (None, Some(file)) => Layers::new().file(file),
        (None, None) => Layers::new().samples(),
    };
    let layers = layers.environment(std::env::vars_os());
    with_flags(layers, arguments).read()
}

fn with_flags(layers: Layers, arguments: &Serve) -> Layers {
    let flags = [
        ("--http", "listen.http", &arguments.http),
        ("--grpc", "listen.grpc", &arguments.grpc),
        ("--resp", "listen.resp", &arguments.resp),
        ("--metrics", "listen.metrics", &arguments.metrics),
        ("--admin", "listen.admin", &arguments.admin),
        ("--store", "store.url", &arguments.store),
        ("--namespace", "namespace", &arguments.namespace),
        ("--data", "store.data", &arguments.data),
        ("--max-keys", "store.max_keys", &arguments.max_keys),
    ];
    let set =
        flags.into_iter().filter_map(|(flag, field, value)| Some((flag, field, value.as_ref()?)));
    set.fold(layers, |layers, (flag, field, value)| layers.flag(flag, field, value))
}

/// Loads the configuration and the certificates again.
fn reload(arguments: &Serve, tls: Option<&Tls>) -> Result<Config, ConfigErrors> {
    if let Some(Err(error)) = tls.map(Tls::reload) {
        tracing::error!("{error}; keeping the previous certificate");
    }
    load(arguments).map(LoadedConfig::into_config)
}
