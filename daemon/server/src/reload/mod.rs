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
use crate::services::Services;
use tollgate_config::{Config, ConfigErrors, TokenSecret, logged_limits, watched_paths};

/// How often files are polled; a change is applied at the second poll that finds it.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// The number of polls after which a rejected configuration is read again. The error may be in a
/// file that it names for the first time: such a file is not watched until the configuration is
/// active.
const POLLS_PER_RETRY: u32 = 20;

type ReadConfig = dyn Fn() -> Result<Config, ConfigErrors> + Send + Sync;
type OnApplied = dyn Fn(&Config) + Send + Sync;
type Hook = dyn Fn() + Send + Sync;

/// How to reload the configuration: its source and the triggers.
pub struct Reload {
    file: Option<PathBuf>,
    requests: mpsc::Receiver<()>,
    interval: Duration,
    hooks: Hooks,
}

/// The functions of the caller.
struct Hooks {
    read: Box<ReadConfig>,
    before: Box<Hook>,
    after: Box<Hook>,
    on_applied: Box<OnApplied>,
}

impl Reload {
    /// Calls `read` when `file`, or a file that it names, has changed, and for each message of
    /// `requests`, such as one for a SIGHUP.
    pub fn new(
        file: Option<PathBuf>,
        read: impl Fn() -> Result<Config, ConfigErrors> + Send + Sync + 'static,
        requests: mpsc::Receiver<()>,
    ) -> Self {
        let hooks = Hooks {
            read: Box::new(read),
            before: Box::new(|| {}),
            after: Box::new(|| {}),
            on_applied: Box::new(|_| {}),
        };
        Reload { file, requests, interval: POLL_INTERVAL, hooks }
    }

    /// Sets how often the files are polled; by default four times a second.
    #[must_use]
    pub fn every(mut self, interval: Duration) -> Self {
        self.interval = interval;
        self
    }

    /// Calls `before` before each reload and `after` after it, whether it succeeds or not. Reading
    /// files that changed while the daemon started is part of the start and not a reload.
    #[must_use]
    pub fn around(
        mut self,
        before: impl Fn() + Send + Sync + 'static,
        after: impl Fn() + Send + Sync + 'static,
    ) -> Self {
        (self.hooks.before, self.hooks.after) = (Box::new(before), Box::new(after));
        self
    }

    /// Calls `hook` with each configuration that a reload has made active.
    #[must_use]
    pub fn on_applied(mut self, hook: impl Fn(&Config) + Send + Sync + 'static) -> Self {
        self.hooks.on_applied = Box::new(hook);
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
    let Reload { file, mut requests, interval: period, hooks } = reload;
    let files = Files::new(source_files(file.as_ref(), &config));
    let mut reloader = Reloader {
        file,
        hooks,
        config,
        files,
        overrides,
        changed: String::new(),
        error: None,
        polls_since_error: 0,
        services,
    };
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut is_open, mut is_first) = (true, true);
    loop {
        let is_requested = tokio::select! {
            _ = ticks.tick() => false,
            request = requests.recv(), if is_open => {
                is_open = request.is_some();
                is_open
            }
        };
        let is_start = std::mem::take(&mut is_first);
        // Blocking: the files may contain a million overrides.
        let poll = spawn_blocking(move || {
            if is_start {
                reloader.start();
            }
            if is_requested || !is_start {
                reloader.poll(is_requested);
            }
            reloader
        });
        match poll.await {
            Ok(polled) => reloader = polled,
            // The daemon ends.
            Err(error) if error.is_cancelled() => return,
            Err(error) => return tracing::error!("watching the configuration failed: {error}"),
        }
    }
}

/// The active configuration and the watched files.
struct Reloader {
    file: Option<PathBuf>,
    hooks: Hooks,
    /// The active configuration, without the override files.
    config: Config,
    files: Files,
    overrides: OverridesFiles,
    /// The files that have changed since the active configuration was read, for the log.
    changed: String,
    /// Why the files were rejected, without the override files.
    error: Option<String>,
    polls_since_error: u32,
    services: Arc<Services>,
}

impl Reloader {
    /// Reads the files again, because they may have changed while the daemon started.
    fn start(&mut self) {
        if let Err(error) = self.read_and_apply() {
            self.error = Some(error);
            self.report();
        }
    }

    /// Reloads if a file has changed, or if a reload was requested.
    fn poll(&mut self, is_requested: bool) {
        let overrides_changed = self.overrides.have_changed();
        if is_requested || self.files.have_changed() {
            self.list_changed();
            (self.hooks.before)();
            self.polls_since_error = 0;
            self.reload(true);
            (self.hooks.after)();
        } else if overrides_changed {
            self.list_changed();
            self.reload_overrides();
        } else if self.error.is_some() {
            self.polls_since_error = self.polls_since_error.wrapping_add(1);
            if self.polls_since_error.is_multiple_of(POLLS_PER_RETRY) {
                self.reload(false);
            }
        }
    }

    fn list_changed(&mut self) {
        let mut changed: Vec<_> =
            self.files.different().chain(self.overrides.different()).collect();
        changed.sort_unstable();
        let changed: Vec<_> = changed.iter().map(|path| path.display().to_string()).collect();
        self.changed = if changed.is_empty() { "no file".to_owned() } else { changed.join(", ") };
    }

    /// Reads everything that has changed. A retry that fails for the same reason is not reported
    /// again.
    fn reload(&mut self, is_change: bool) {
        let error = match self.read_and_apply() {
            Ok(true) => None,
            Ok(false) => return,
            Err(error) => Some(error),
        };
        let is_new = is_change || error != self.error;
        self.error = error;
        if is_new {
            self.report();
        }
    }

    /// Returns false if the files changed while they were read; then nothing is applied.
    fn read_and_apply(&mut self) -> Result<bool, String> {
        let Some(config) = self.read_whole()? else { return Ok(false) };
        self.apply(&config)?;
        for limit in logged_limits(config.unused_limits(&self.config)) {
            tracing::warn!("{limit}");
        }
        (self.hooks.on_applied)(&config);
        self.config = config;
        Ok(true)
    }

    /// Reads the override files that have changed, even if the configuration was rejected.
    fn reload_overrides(&mut self) {
        if let Err(error) = self.apply(&self.config.clone()) {
            self.error = Some(error);
        }
        self.report();
    }

    fn apply(&mut self, config: &Config) -> Result<(), String> {
        self.services.engine.activate(self.overrides.build(config)?);
        self.services.admin.set_effective_yaml(config.effective_yaml.clone());
        self.services.update_health();
        Ok(())
    }

    /// Reports the result to the log, the readiness page and the metrics.
    fn report(&self) {
        let errors: Vec<_> = self.error.iter().cloned().chain(self.overrides.error()).collect();
        if errors.is_empty() {
            let config = &self.config;
            tracing::info!(
                changed = self.changed,
                policies = config.policies.iter().count(),
                rules = config.rules.rules.len(),
                domains = config.domains.domains().count(),
                descriptor_rules = config.domains.rule_count(),
                tokens = config.tokens.len(),
                "configuration reloaded"
            );
            self.services.report_warnings(config);
            self.count(true);
            self.services.reload_error.send_replace(None);
            return;
        }
        self.count(false);
        let errors = errors.join("\n");
        tracing::error!(
            changed = self.changed,
            "configuration rejected, keeping the previous one: {errors}"
        );
        self.services.reload_error.send_replace(Some(errors.into()));
    }

    fn count(&self, is_accepted: bool) {
        let engine = &self.services.engine;
        engine.counters.reloads.count(is_accepted, engine.clock().now());
    }

    /// Reads the configuration. Returns `None` if a file changed meanwhile. All files are watched
    /// from before they are read, so the next poll finds that change.
    fn read_whole(&mut self) -> Result<Option<Config>, String> {
        let mut paths = source_files(self.file.as_ref(), &self.config);
        loop {
            self.files = Files::new(paths.clone());
            self.reject_empty_file()?;
            let read = (self.hooks.read)();
            // An error may come from the half-written change.
            if self.files.differ_now() {
                return Ok(None);
            }
            let config = read.map_err(|error| error.to_string())?;
            let needed = source_files(self.file.as_ref(), &config);
            if needed.iter().all(|needed| paths.contains(needed)) {
                return self.check_restart(config).map(Some);
            }
            paths = needed;
        }
    }

    /// Rejects an empty file, which would be a valid configuration without policies. Most programs
    /// truncate a file before they write it, and that moment must not remove every policy.
    fn reject_empty_file(&self) -> Result<(), String> {
        let is_empty = |path: &PathBuf| {
            fs::metadata(path).is_ok_and(|metadata| metadata.is_file() && metadata.len() == 0)
        };
        match self.file.as_ref().filter(|file| is_empty(file)) {
            Some(file) => {
                Err(format!("{}: it is empty; write policies: {{}} to have none", file.display()))
            }
            None => Ok(()),
        }
    }

    /// Rejects changes that need a restart.
    fn check_restart(&self, config: Config) -> Result<Config, String> {
        let mut fields = self.config.needs_restart(&config);
        if self.services.engine.limiter().as_memory().is_some() {
            fields.extend(self.moved_policies(&config));
        }
        if fields.is_empty() {
            return Ok(config);
        }
        let fields = fields.join(", ");
        Err(format!("{fields}: cannot change while the daemon runs; restart the daemon"))
    }

    /// The policies whose keys would have to move to another table of the memory store.
    fn moved_policies(&self, config: &Config) -> Vec<String> {
        let has_own = |policy: &Policy| policy.max_keys().is_some();
        let policies = self.config.policies.iter();
        let moved = policies.filter(|old| {
            config.policies.get(old.name()).is_ok_and(|new| has_own(new) != has_own(old))
        });
        moved.map(|moved| format!("policies.{}.max_keys", moved.name())).collect()
    }
}

/// The files that a configuration is read from, without the override files.
fn source_files(file: Option<&PathBuf>, config: &Config) -> Vec<PathBuf> {
    let tokens = config.tokens.iter().filter_map(|token| match &token.secret {
        TokenSecret::File(path) => Some(path),
        TokenSecret::Text(_) | TokenSecret::Sha256(_) | TokenSecret::Certificate(_) => None,
    });
    let files = file.into_iter().chain(tokens).chain(&config.jwks_file).cloned();
    let domains = watched_paths(&config.envoy.config);
    files.chain(domains).collect()
}
