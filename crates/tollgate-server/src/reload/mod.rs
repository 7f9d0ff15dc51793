//! Reading the configuration again: as soon as one of its files has changed, and when told to.
//!
//! A configuration is applied whole or refused whole. One that is refused changes nothing: what
//! was in force stays, and why is told by the log, by `/readyz?verbose` and by a metric.

mod files;

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::spawn_blocking;
use tokio::time::{MissedTickBehavior, interval};

use self::files::Files;
use crate::config::{Config, ConfigErrors};
use crate::daemon::Daemon;
use crate::live::Live;

/// How often files are looked at; a change is applied at the second look that finds it.
const LOOK_EVERY: Duration = Duration::from_millis(250);

type Read = dyn Fn() -> Result<Config, ConfigErrors> + Send + Sync;

/// Where a configuration is read again from, and who may ask for that.
pub struct Reload {
    file: Option<PathBuf>,
    read: Arc<Read>,
    told: mpsc::Receiver<()>,
}

impl Reload {
    /// Reads the configuration again by `read` as soon as `file` has changed, or a file that it
    /// names, and whenever something comes through `told`, as on SIGHUP.
    pub fn new(
        file: Option<PathBuf>,
        read: impl Fn() -> Result<Config, ConfigErrors> + Send + Sync + 'static,
        told: mpsc::Receiver<()>,
    ) -> Self {
        Reload { file, read: Arc::new(read), told }
    }
}

impl fmt::Debug for Reload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reload").finish_non_exhaustive()
    }
}

/// What became of the last reload.
#[derive(Debug, Default)]
pub(crate) struct Standing(Mutex<Option<Arc<str>>>);

impl Standing {
    /// Why the files are not what is in force, if so.
    pub(crate) fn refusal(&self) -> Option<Arc<str>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, refusal: Option<Arc<str>>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = refusal;
    }
}

/// Reads again, for ever.
pub(crate) async fn watch(reload: Reload, config: Config, daemon: Arc<Daemon>) {
    let Reload { read, mut told } = reload;
    let mut reloader = Reloader { read, files: Files::of(config.files()), config, daemon };
    let mut looks = interval(LOOK_EVERY);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut can_be_told = true;
    loop {
        let is_told = tokio::select! {
            _ = looks.tick() => false,
            it = told.recv(), if can_be_told => {
                can_be_told = it.is_some();
                it.is_some()
            }
        };
        // Files are read, and perhaps a million overrides with them.
        let looked = spawn_blocking(move || {
            if is_told || reloader.files.have_changed() {
                reloader.reload();
            }
            reloader
        });
        match looked.await {
            Ok(it) => reloader = it,
            Err(error) => return tracing::error!("the configuration is not watched any more: {error}"),
        }
    }
}

struct Reloader {
    read: Arc<Read>,
    files: Files,
    /// What is in force.
    config: Config,
    daemon: Arc<Daemon>,
}

impl Reloader {
    fn reload(&mut self) {
        match self.read_whole() {
            Ok(config) => {
                self.daemon.apply(Live::of(&config));
                self.daemon.reloads.set(None);
                let (policies, rules) = (config.policies.len(), config.rules.len());
                tracing::info!(policies, rules, "the configuration was read again and is in force");
                self.config = config;
            }
            Err(why) => {
                tracing::error!("the configuration is refused, what was in force stays: {why}");
                self.daemon.reloads.set(Some(why.into()));
            }
        }
    }

    /// Reads the configuration, and all files it names as they were when it was read.
    fn read_whole(&mut self) -> Result<Config, String> {
        let mut paths: Vec<PathBuf> = self.config.files();
        loop {
            // Files are fixed before they are read: one that changes meanwhile is seen at the next look.
            self.files = Files::of(paths.clone());
            let config = (self.read)().map_err(|it| it.to_string())?;
            let needed = config.files();
            if needed.iter().all(|it| paths.contains(it)) {
                return self.applicable(config);
            }
            paths = needed;
        }
    }

    fn applicable(&self, config: Config) -> Result<Config, String> {
        match &*self.config.needs_restart(&config) {
            [] => Ok(config),
            fields => Err(format!("{} cannot change while the daemon runs: it needs a restart", fields.join(", "))),
        }
    }
}
