//! Reading the configuration again: as soon as one of its files has changed, and when told to.
//!
//! A configuration is applied whole or refused whole. One that is refused changes nothing: what
//! was in force stays, and why is told by the log, by `/readyz?verbose` and by a metric.

mod files;
mod overrides;

use std::fmt;
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::spawn_blocking;
use tokio::time::{MissedTickBehavior, interval};
use tollgate::Policy;

use self::files::Files;
pub(crate) use self::overrides::OverridesFiles;
use crate::config::{Config, ConfigErrors, TokenSecret, watched_paths};
use crate::daemon::Daemon;

/// How often files are looked at; a change is applied at the second look that finds it.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// After how many looks what was refused is tried again: what is wrong may be in a file that it
/// names for the first time, which is not looked at before it has been in force.
const TRY_AGAIN: u32 = 20;

type Read = dyn Fn() -> Result<Config, ConfigErrors> + Send + Sync;
type Applied = dyn Fn(&Config) + Send + Sync;
type Told = dyn Fn() + Send + Sync;

/// Where a configuration is read again from, and who may ask for that.
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
    /// Reads the configuration again by `read` as soon as `file` has changed, or a file that it
    /// names, and whenever something comes through `told`, as on SIGHUP.
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

    /// Looks at the files this often, in place of four times a second.
    #[must_use]
    pub fn every(mut self, time: Duration) -> Self {
        self.every = time;
        self
    }

    /// Tells that a reload has begun, and that it has ended, well or badly. What is read as the
    /// daemon starts, for files may have changed meanwhile, is part of its start and no reload.
    #[must_use]
    pub fn around(
        mut self,
        begun: impl Fn() + Send + Sync + 'static,
        ended: impl Fn() + Send + Sync + 'static,
    ) -> Self {
        (self.begun, self.ended) = (Box::new(begun), Box::new(ended));
        self
    }

    /// Tells of each configuration that was read again and is in force from then on.
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
pub(crate) async fn watch(
    reload: Reload,
    config: Config,
    overrides: OverridesFiles,
    daemon: Arc<Daemon>,
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
        daemon,
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
        // Files are read, and perhaps a million overrides with them.
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
                return tracing::error!("the configuration is not watched any more: {value}");
            }
        }
    }
}

/// What is in force, and what it is compared with.
struct Reloader {
    file: Option<PathBuf>,
    read: Arc<Read>,
    applied: Arc<Applied>,
    begun: Box<Told>,
    ended: Box<Told>,
    /// In force, but for the files of overrides.
    config: Config,
    files: Files,
    overrides: OverridesFiles,
    /// Why what the files say now is not what is in force, but for those of overrides.
    refusal: Option<String>,
    /// For how many looks it has been refused.
    refused_looks: u32,
    daemon: Arc<Daemon>,
}

impl Reloader {
    /// Reads what may have changed since the daemon was started with it.
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

    /// Reads everything that has changed. Where that is tried only again, its failing for the same
    /// reason is no news.
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

    /// Whether what was read is in force; it is not if it changed while it was read.
    fn read_and_apply(&mut self) -> Result<bool, String> {
        let Some(config) = self.read_whole()? else { return Ok(false) };
        self.apply(&config)?;
        (self.applied)(&config);
        self.config = config;
        Ok(true)
    }

    /// Reads the files of overrides that have changed, whatever the rest of the configuration is.
    fn reload_overrides(&mut self) {
        if let Err(why) = self.apply(&self.config.clone()) {
            self.refusal = Some(why);
        }
        self.tell();
    }

    fn apply(&mut self, config: &Config) -> Result<(), String> {
        self.daemon.apply(self.overrides.live(config)?);
        Ok(())
    }

    /// Tells the log, and whoever asks, what has come of it.
    fn tell(&self) {
        let refusals: Vec<_> =
            self.refusal.iter().cloned().chain(self.overrides.refusal()).collect();
        if refusals.is_empty() {
            let policies = self.config.policies.iter().count();
            let rules = self.config.rules.rules.len();
            tracing::info!(policies, rules, "the configuration was read again and is in force");
            self.count(true);
            return self.daemon.reloads.set(None);
        }
        self.count(false);
        let why = refusals.join("\n");
        tracing::error!("the configuration is refused, and what was in force stays: {why}");
        self.daemon.reloads.set(Some(why.into()));
    }

    fn count(&self, is_good: bool) {
        self.daemon.metrics.reloaded(is_good, self.daemon.clock.now());
    }

    /// Reads the configuration; nothing if it changed meanwhile, which the next look finds, for it
    /// is watched with all files that it names from before they are read.
    fn read_whole(&mut self) -> Result<Option<Config>, String> {
        let mut paths = files_of(self.file.as_ref(), &self.config);
        loop {
            self.files = Files::of(paths.clone());
            self.refuse_nothing()?;
            let read = (self.read)();
            // What was amiss may have been that.
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

    /// A file without a byte is a configuration without a policy. So it looks too between the two
    /// steps in which most programs write a file in place: nobody is to be refused for that.
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
        if self.daemon.limiter().as_memory().is_some() {
            fields.extend(self.other_tables(&config));
        }
        if fields.is_empty() {
            return Ok(config);
        }
        let fields = fields.join(", ");
        Err(format!("{fields}: this cannot change while the daemon runs; it needs a restart"))
    }

    /// The policies whose keys would have to move to another table of the memory.
    fn other_tables(&self, config: &Config) -> Vec<String> {
        let has_own = |policy: &Policy| policy.max_keys().is_some();
        let policies = self.config.policies.iter();
        let moved = policies.filter(|old| {
            config.policies.get(old.name()).is_ok_and(|new| has_own(new) != has_own(old))
        });
        moved.map(|moved| format!("policies.{}.max_keys", moved.name())).collect()
    }
}

/// The files that a configuration is read from, but for those of overrides.
fn files_of(file: Option<&PathBuf>, config: &Config) -> Vec<PathBuf> {
    let tokens = config.tokens.iter().filter_map(|token| match &token.secret {
        TokenSecret::File(path) => Some(path),
        TokenSecret::Text(_) => None,
    });
    let files = file.into_iter().chain(tokens).chain(&config.jwks_file).cloned();
    let domains = watched_paths(&config.envoy.config);
    files.chain(domains).collect()
}
