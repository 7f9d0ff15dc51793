//! The admin listener: a dashboard that is embedded in the binary, and the API that it reads.
//!
//! Rates and percentiles are computed from the counters of the engine, which are read once a second
//! into a history; decisions are not slowed. Operations on keys are those of
//! the JSON API, with its rights and its audit.

mod answer;
mod assets;
mod body;
mod counts;
mod details;
mod histogram;
mod history;
mod number;
mod overview;
mod watchers;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};
use tollgate_engine::Engine;
use tollgate_transport::Lifecycle;

pub use self::body::{Body, Reply};
use self::history::History;
use self::overview::Overview;
use self::watchers::Watchers;

/// The interval of samples and events.
const INTERVAL: Duration = Duration::from_secs(1);

/// The state of the admin listener.
#[derive(Debug)]
pub struct Admin {
    engine: Arc<Engine>,
    lifecycle: Arc<Lifecycle>,
    history: Mutex<History>,
    watchers: Arc<Watchers>,
    /// Why the last reload was rejected, if it was.
    reload_error: watch::Receiver<Option<Arc<str>>>,
    /// What is doubtful in the files of the active configuration.
    config_warnings: watch::Receiver<Vec<String>>,
    /// The effective configuration, without secrets.
    effective_yaml: Mutex<Option<Arc<str>>>,
}

impl Admin {
    /// The state for an engine. Its history begins with [`sample`](Self::sample).
    #[must_use]
    pub fn new(
        engine: Arc<Engine>,
        lifecycle: Arc<Lifecycle>,
        reload_error: watch::Receiver<Option<Arc<str>>>,
        config_warnings: watch::Receiver<Vec<String>>,
    ) -> Self {
        Admin {
            history: Mutex::new(History::new(&engine)),
            engine,
            lifecycle,
            watchers: Arc::default(),
            reload_error,
            config_warnings,
            effective_yaml: Mutex::default(),
        }
    }

    /// Sets the effective configuration, without secrets, that the dashboard shows. The engine uses
    /// it already: streams end, because their tokens may no longer be valid, and clients open others.
    pub fn set_effective_yaml(&self, yaml: Option<Arc<str>>) {
        *self.lock_yaml() = yaml;
        self.watchers.end();
    }

    /// Samples the counters and sends events, once a second; never returns.
    pub async fn sample(self: Arc<Self>) {
        let mut ticks = interval(INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        ticks.tick().await;
        loop {
            ticks.tick().await;
            self.lock_history().sample(&self.engine);
            self.watchers.send(self.engine.clock().now(), || answer::event(&self.overview(1)));
        }
    }

    /// Ends all event streams, so that their connections can end.
    pub fn close(&self) {
        self.watchers.close();
    }

    fn overview(&self, samples: usize) -> Overview {
        Overview::new(&self.engine, &self.lifecycle, &self.lock_history(), samples)
    }

    // Both are valid after every single update.
    fn lock_history(&self) -> MutexGuard<'_, History> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_yaml(&self) -> MutexGuard<'_, Option<Arc<str>>> {
        self.effective_yaml.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
