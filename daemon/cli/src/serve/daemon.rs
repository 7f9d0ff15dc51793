//! Runs a daemon from bound listeners until it stops.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use tollgate::{Limiter, RestoreReport, StoreError};
use tollgate_daemon::{Config, ConfigErrors, Listeners, Reload, SnapshotTask};

use super::logs::Logs;
use super::signals::{self, Signals};
use super::systemd;
use crate::output;

/// A daemon that is ready to run.
pub(crate) struct Daemon {
    pub(crate) config: Config,
    pub(crate) listeners: Listeners,
    /// The configuration file, if there is one.
    pub(crate) file: Option<PathBuf>,
    /// Reads the configuration again.
    pub(crate) read: Box<dyn Fn() -> Result<Config, ConfigErrors> + Send + Sync>,
}

/// The state of a running daemon that the greeting describes.
#[derive(Debug)]
pub(crate) struct Ready<'a> {
    pub(crate) config: &'a Config,
    pub(crate) listeners: &'a Listeners,
    /// The snapshot found in the data directory.
    pub(crate) restored: Option<&'a RestoreReport>,
    /// The error, if the store is unavailable.
    pub(crate) store_error: Option<StoreError>,
}

impl Daemon {
    /// Opens the store, prints the greeting, and serves until a signal stops the daemon.
    pub(crate) async fn run(
        self,
        logs: Logs,
        greet: impl FnOnce(Ready<'_>) -> Result<String>,
    ) -> Result<()> {
        let Daemon { config, listeners, file, read } = self;
        let signals = Signals::listen().context("cannot listen to signals")?;
        let hangups = signals::hangups().context("cannot listen to signals")?;
        let reload = Reload::new(file, read, hangups);
        let reload = reload.around(systemd::reloading, systemd::ready);
        let reload = reload.on_applied(move |reload| logs.set_level(reload.log.level));
        let data = config.store.data.as_deref().filter(|_| config.store.url.is_memory());
        let opened = data.map(|data| SnapshotTask::open(data, &config.store)).transpose()?;
        let (snapshots, restored) = opened.unzip();
        let limiter: Limiter = match &snapshots {
            Some(snapshots) => snapshots.limiter().clone().into(),
            None => config.store.open(&config.namespace).await?,
        };
        let restored = restored.as_ref();
        let store_error = store_error(&limiter).await;
        let ready = Ready { config: &config, listeners: &listeners, restored, store_error };
        output::print(&greet(ready)?)?;
        systemd::ready();
        let watchdog = tokio::spawn(systemd::live());
        let snapshot_handle =
            snapshots.clone().map(|snapshots| tokio::spawn(async move { snapshots.run().await }));
        tollgate_daemon::run(config, listeners, limiter, Some(reload), signals.stop()).await?;
        if let Some(snapshot_handle) = snapshot_handle {
            snapshot_handle.abort();
        }
        if let Some(snapshots) = snapshots {
            let saved = tokio::task::spawn_blocking(move || snapshots.save()).await?;
            saved.context("cannot save the last decisions")?;
        }
        watchdog.abort();
        tracing::info!("stopped");
        Ok(())
    }
}

/// The current error of the store, if it is known. The memory store is always available.
async fn store_error(limiter: &Limiter) -> Option<StoreError> {
    let ready = tokio::time::timeout(Duration::ZERO, limiter.as_redis()?.ready()).await;
    ready.ok()?.err()
}
