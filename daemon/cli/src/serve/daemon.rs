//! A daemon from its sockets to its end, whatever its configuration was read from.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use tollgate::{Limiter, RestoreReport, StoreError};
use tollgate_server::{Config, ConfigErrors, Keeper, Listeners, Reload};

use super::logs::Logs;
use super::signals::{self, Signals};
use super::systemd;
use crate::output;

/// What a daemon is run with.
pub(crate) struct Daemon {
    pub(crate) config: Config,
    pub(crate) listeners: Listeners,
    /// The configuration file, if there is one.
    pub(crate) file: Option<PathBuf>,
    /// Reads the configuration again.
    pub(crate) read: Box<dyn Fn() -> Result<Config, ConfigErrors> + Send + Sync>,
}

/// What there is to say of a daemon that is ready.
#[derive(Debug)]
pub(crate) struct Ready<'a> {
    pub(crate) config: &'a Config,
    pub(crate) listeners: &'a Listeners,
    /// What was found in the data directory.
    pub(crate) restored: Option<&'a RestoreReport>,
    /// Why the store cannot be asked, if so.
    pub(crate) away: Option<StoreError>,
}

impl Daemon {
    /// Opens the store, prints what `greet` says, and serves until a signal says to stop.
    pub(crate) async fn run(
        self,
        logs: Logs,
        greet: impl FnOnce(Ready<'_>) -> Result<String>,
    ) -> Result<()> {
        let Daemon { config, listeners, file, read } = self;
        let signals = Signals::listen().context("signals cannot be listened to")?;
        let told = signals::hangups().context("signals cannot be listened to")?;
        let reload = Reload::new(file, read, told);
        let reload = reload.around(systemd::reloading, systemd::ready);
        let reload = reload.on_applied(move |reload| logs.set_level(reload.log.level));
        let data = config.store.data.as_deref().filter(|_| config.store.url.is_memory());
        let keeper = data.map(|data| Keeper::open(data, &config.store)).transpose()?;
        let limiter: Limiter = match &keeper {
            Some((keeper, _)) => keeper.limiter().clone().into(),
            None => config.store.open(&config.namespace).await?,
        };
        let restored = keeper.as_ref().map(|(_, restored)| restored);
        let away = away(&limiter).await;
        let ready = Ready { config: &config, listeners: &listeners, restored, away };
        output::print(&greet(ready)?)?;
        systemd::ready();
        let watchdog = tokio::spawn(systemd::live());
        let keeper = keeper.map(|(keeper, _)| keeper);
        let keeping = keeper.clone().map(|keeper| tokio::spawn(async move { keeper.keep().await }));
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
}

/// Why the store cannot be asked now, as far as that is known; memory always can.
async fn away(limiter: &Limiter) -> Option<StoreError> {
    let ready = tokio::time::timeout(Duration::ZERO, limiter.as_redis()?.ready()).await;
    ready.ok()?.err()
}
