//! `tollgate serve`: the daemon.

mod bind;
mod greeting;
mod logs;
mod signals;
mod systemd;
#[cfg(feature = "otlp")]
mod traces;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use tollgate::{Limiter, StoreError};
use tollgate_server::{Config, ConfigErrors, Keeper, Layered, Layers, Listener, Reload, Tls};

use crate::arguments::Serve;
use crate::output;
use greeting::Greeting;
use logs::Logs;
use signals::Signals;

pub(crate) fn run(arguments: Serve) -> Result<ExitCode> {
    let layered = layered(&arguments)?;
    // Before anything listens, opens or is written.
    layered.check_files()?;
    let config = layered.config;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    #[cfg(feature = "otlp")]
    let (traces, listener) = traces::Traces::start(runtime.handle())?;
    #[cfg(not(feature = "otlp"))]
    let listener = None;
    let logs = Logs::start(&config.log, listener)?;
    raise_open_files();
    let served = runtime.block_on(serve(config, arguments, logs));
    #[cfg(feature = "otlp")]
    traces.stop();
    served.map(|()| ExitCode::SUCCESS)
}

/// The file, then the environment, then the flags.
fn layered(arguments: &Serve) -> Result<Layered, ConfigErrors> {
    let layers = match (&arguments.limits, &arguments.config) {
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
        ("--store", "store.url", &arguments.store),
        ("--namespace", "namespace", &arguments.namespace),
        ("--data", "store.data", &arguments.data),
        ("--max-keys", "store.max_keys", &arguments.max_keys),
    ];
    let said =
        flags.into_iter().filter_map(|(flag, field, value)| Some((flag, field, value.as_ref()?)));
    said.fold(layers, |layers, (flag, field, value)| layers.flag(flag, field, value))
}

async fn serve(started: Config, arguments: Serve, logs: Logs) -> Result<()> {
    let is_sample = arguments.config.is_none() && arguments.limits.is_none();
    let signals = Signals::listen().context("signals cannot be listened to")?;
    let told = signals::hangups().context("signals cannot be listened to")?;
    let file = arguments.config.clone();
    let tls = started.listen.tls.clone().map(Tls::open).transpose()?;
    let listeners = bind::bind(&started.listen, tls.as_ref()).await?;
    let reload = Reload::new(file, move || read_again(&arguments, tls.as_ref()), told);
    let reload = reload.around(systemd::reloading, systemd::ready);
    let reload = reload.on_applied(move |it| logs.set_level(it.log.level));
    let config = started;
    let data = config.store.data.as_deref().filter(|_| config.store.url.is_memory());
    let keeper = data.map(|it| Keeper::open(it, &config.store)).transpose()?;
    let limiter: Limiter = match &keeper {
        Some((keeper, _)) => keeper.limiter().clone().into(),
        None => config.store.open(&config.namespace).await?,
    };
    let greeting = Greeting {
        config: &config,
        is_sample,
        http: listeners.http.as_ref().map(Listener::address).transpose()?,
        grpc: listeners.grpc.as_ref().map(Listener::address).transpose()?,
        resp: listeners.resp.as_ref().map(Listener::address).transpose()?,
        metrics: listeners.metrics.as_ref().map(Listener::address).transpose()?,
        restored: keeper.as_ref().map(|(_, restored)| restored),
        away: away(&limiter).await,
    };
    output::print(&greeting.to_string())?;
    systemd::ready();
    let watchdog = tokio::spawn(systemd::live());
    let keeper = keeper.map(|(keeper, _)| keeper);
    let keeping = keeper.clone().map(|it| tokio::spawn(async move { it.keep().await }));
    tollgate_server::run(config, listeners, limiter, Some(reload), signals.stop()).await?;
    if let Some(keeping) = keeping {
        keeping.abort();
    }
    if let Some(keeper) = keeper {
        let saved = tokio::task::spawn_blocking(move || keeper.save()).await?;
        saved.context("what was decided last is not saved")?;
    }
    watchdog.abort();
    tracing::info!("stopped");
    Ok(())
}

/// Reads everything again that may have changed.
fn read_again(arguments: &Serve, tls: Option<&Tls>) -> Result<Config, ConfigErrors> {
    if let Some(Err(error)) = tls.map(Tls::reload) {
        tracing::error!("{error}; the certificate from before is shown still");
    }
    layered(arguments).map(|it| it.config)
}

/// Why the store cannot be asked now, as far as that is known; memory always can.
async fn away(limiter: &Limiter) -> Option<StoreError> {
    let ready = tokio::time::timeout(Duration::ZERO, limiter.as_redis()?.ready()).await;
    ready.ok()?.err()
}

/// Takes as many open files as the system gives: each connection is one, and many systems begin
/// with 1,024.
fn raise_open_files() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // With fewer, connections wait for each other sooner.
    let _ = setrlimit(Resource::Nofile, limit);
}
