//! Reloading the configuration when one of its files has changed, and on request.
//!
//! A configuration is applied or rejected as a whole. After a rejection the previous configuration
//! stays active; the log, `/readyz?verbose` and a metric report the reason.

mod files;
mod overrides;

use std::fmt;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::spawn_blocking;
use tokio::time::{MissedTickBehavior, interval};
use tollgate::Policy;

use self::files::Files;
pub(crate) use self::overrides::OverridesFiles;
use crate::config::{Config, ConfigErrors, TokenSecret, watched_paths};
use crate::services::Services;

/// How often files are polled; a change is applied at the second poll that finds it.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// The number of polls after which a rejected configuration is tried again. The mistake may be in a
/// file that it names for the first time: such a file is not watched until it has been active.
const TRY_AGAIN: u32 = 20;

type Read = dyn Fn() -> Result<Config, ConfigErrors> + Send + Sync;
type Applied = dyn Fn(&Config) + Send + Sync;
type Told = dyn Fn() + Send + Sync;

/// How to reload the configuration: its source and the triggers.
pub struct Reload {
    file: Option<PathBuf>,
    read: Arc<Read>,
    told: mpsc::Receiver<()>,
    every: Duration,
    applied: Arc<Applied>,
    begun: Box<Told>,
    ended: Box<Told>,
}

impl Reload {
    /// Calls `read` when `file`, or a file that it names, has changed, and for each message on
    /// `told`, which a SIGHUP sends.
    pub fn new(
        file: Option<PathBuf>,
        read: impl Fn() -> Result<Config, ConfigErrors> + Send + Sync + 'static,
        told: mpsc::Receiver<()>,
    ) -> Self {
        Reload {
            file,
            read: Arc::new(read),
            told,
            every: LOOK_EVERY,
            applied: Arc::new(|_| {}),
            begun: Box::new(|| {}),
            ended: Box::new(|| {}),
        }
    }

    /// Sets how often the files are polled; by default four times a second.
    #[must_use]
    pub fn every(mut self, time: Duration) -> Self {
        self.every = time;
        self
    }

    /// Calls `begun` before each reload and `ended` after it, whether it succeeds or not. Reading
    /// files that changed while the daemon started is part of the start and not a reload.
    #[must_use]
    pub fn around(
        mut self,
        begun: impl Fn() + Send + Sync + 'static,
        ended: impl Fn() + Send + Sync + 'static,
    ) -> Self {
        (self.begun, self.ended) = (Box::new(begun), Box::new(ended));
        self
    }

    /// Calls `tell` with each configuration that a reload has made active.
    #[must_use]
    pub fn on_applied(mut self, tell: impl Fn(&Config) + Send + Sync + 'static) -> Self {
        self.applied = Arc::new(tell);
        self
    }
}

impl fmt::Debug for Reload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reload").finish_non_exhaustive()
    }
}

/// Reloads the configuration; never returns.
pub(crate) async fn watch(
    reload: Reload,
    config: Config,
    overrides: OverridesFiles,
    services: Arc<Services>,
) {
    let Reload { file, read, mut told, every, applied, begun, ended } = reload;
    let files = Files::of(files_of(file.as_ref(), &config));
    let mut reloader = Reloader {
        file,
        read,
        applied,
        begun,
        ended,
        config,
        files,
        overrides,
        refusal: None,
        refused_looks: 0,
        services,
    };
    let mut looks = interval(every);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut can_be_told, mut is_begin) = (true, true);
    loop {
        let is_told = tokio::select! {
            _ = looks.tick() => false,
            it = told.recv(), if can_be_told => {
                can_be_told = it.is_some();
                it.is_some()
            }
        };
        // Blocking: the files may contain a million overrides.
        let is_first = std::mem::take(&mut is_begin);
        let looked = spawn_blocking(move || {
            if is_first {
                reloader.begin();
            }
            if is_told || !is_first {
                reloader.look(is_told);
            }
            reloader
        });
        match looked.await {
            Ok(looked) => reloader = looked,
            Err(value) => {
                return tracing::error!("watching the configuration failed: {value}");
            }
        }
    }
}

/// The active configuration and the watched files.
struct Reloader {
    file: Option<PathBuf>,
    read: Arc<Read>,
    applied: Arc<Applied>,
    begun: Box<Told>,
    ended: Box<Told>,
    /// The active configuration, without the override files.
    config: Config,
    files: Files,
    overrides: OverridesFiles,
    /// Why the files were rejected, without the override files.
    refusal: Option<String>,
    /// The number of polls since the rejection.
    refused_looks: u32,
    services: Arc<Services>,
}

impl Reloader {
    /// Reads the files again, because they may have changed while the daemon started.
    fn begin(&mut self) {
        if let Err(why) = self.read_and_apply() {
            self.refusal = Some(why);
            self.tell();
        }
    }

    fn look(&mut self, is_told: bool) {
        let overrides_changed = self.overrides.have_changed();
        if is_told || self.files.have_changed() {
            (self.begun)();
            self.refused_looks = 0;
            self.reload(true);
            (self.ended)();
        } else if overrides_changed {
            self.reload_overrides();
        } else if self.refusal.is_some() {
            self.refused_looks = self.refused_looks.wrapping_add(1);
            if self.refused_looks.is_multiple_of(TRY_AGAIN) {
                self.reload(false);
            }
        }
    }

    /// Reads everything that has changed. A retry that fails for the same reason is not reported
    /// again.
    fn reload(&mut self, is_news: bool) {
        let refusal = match self.read_and_apply() {
            Ok(true) => None,
            Ok(false) => return,
            Err(why) => Some(why),
        };
        let is_news = is_news || refusal != self.refusal;
        self.refusal = refusal;
        if is_news {
            self.tell();
        }
    }

    /// Returns false if the files changed while they were read; then nothing is applied.
    fn read_and_apply(&mut self) -> Result<bool, String> {
        let Some(config) = self.read_whole()? else { return Ok(false) };
        self.apply(&config)?;
        (self.applied)(&config);
        self.config = config;
        Ok(true)
    }

    /// Reads the override files that have changed, even if the configuration was rejected.
    fn reload_overrides(&mut self) {
        if let Err(why) = self.apply(&self.config.clone()) {
            self.refusal = Some(why);
        }
        self.tell();
    }

    fn apply(&mut self, config: &Config) -> Result<(), String> {
        self.services.engine.activate(self.overrides.build(config)?);
        self.services.update_health();
        Ok(())
    }

    /// Reports the result to the log, the readiness page and the metrics.
    fn tell(&self) {
        let refusals: Vec<_> =
            self.refusal.iter().cloned().chain(self.overrides.refusal()).collect();
        if refusals.is_empty() {
            let policies = self.config.policies.iter().count();
            let rules = self.config.rules.rules.len();
            tracing::info!(policies, rules, "configuration reloaded");
            self.count(true);
            return self.services.reload_status.set(None);
        }
        self.count(false);
        let why = refusals.join("\n");
        tracing::error!("configuration rejected, keeping the previous one: {why}");
        self.services.reload_status.set(Some(why.into()));
    }

    fn count(&self, is_good: bool) {
        let engine = &self.services.engine;
        engine.counters.reloads.count(is_good, engine.clock().now());
    }

    /// Reads the configuration. Returns `None` if a file changed meanwhile. All files are watched
    /// from before they are read, so the next poll finds that change.
    fn read_whole(&mut self) -> Result<Option<Config>, String> {
        let mut paths = files_of(self.file.as_ref(), &self.config);
        loop {
            self.files = Files::of(paths.clone());
            self.refuse_nothing()?;
            let read = (self.read)();
            // An error may come from the half-written change.
            if self.files.are_others() {
                return Ok(None);
            }
            let config = read.map_err(|error| error.to_string())?;
            let needed = files_of(self.file.as_ref(), &config);
            if needed.iter().all(|needed| paths.contains(needed)) {
                return self.applicable(config).map(Some);
            }
            paths = needed;
        }
    }

    /// Rejects an empty file, which would be a valid configuration without policies. Most programs
    /// truncate a file before they write it, and that moment must not remove every policy.
    fn refuse_nothing(&self) -> Result<(), String> {
        let is_empty =
            |path_buf: &PathBuf| fs::metadata(path_buf).is_ok_and(|x| x.is_file() && x.len() == 0);
        match self.file.as_ref().filter(|file| is_empty(file)) {
            Some(file) => {
                Err(format!("{}: it is empty; write policies: {{}} to have none", file.display()))
            }
            None => Ok(()),
        }
    }

    fn applicable(&self, config: Config) -> Result<Config, String> {
        let mut fields = self.config.needs_restart(&config);
        if self.services.engine.limiter().as_memory().is_some() {
            fields.extend(self.other_tables(&config));
        }
        if fields.is_empty() {
            return Ok(config);
        }
        let fields = fields.join(", ");
        Err(format!("{fields}: cannot change while the daemon runs; restart the daemon"))
    }

    /// The policies whose keys would have to move to another table of the memory store.
    fn other_tables(&self, config: &Config) -> Vec<String> {
        let has_own = |policy: &Policy| policy.max_keys().is_some();
        let policies = self.config.policies.iter();
        let moved = policies.filter(|old| {
            config.policies.get(old.name()).is_ok_and(|new| has_own(new) != has_own(old))
        });
        moved.map(|moved| format!("policies.{}.max_keys", moved.name())).collect()
    }
}

/// The files that a configuration is read from, without the override files.
fn files_of(file: Option<&PathBuf>, config: &Config) -> Vec<PathBuf> {
    let tokens = config.tokens.iter().filter_map(|token| match &token.secret {
        TokenSecret::File(path) => Some(path),
        TokenSecret::Text(_) => None,
    });
    let files = file.into_iter().chain(tokens).chain(&config.jwks_file).cloned();
    let domains = watched_paths(&config.envoy.config);
    files.chain(domains).collect()
}
