//! Logging when a Redis store becomes available or unavailable.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};
use tollgate::RedisStore;

use crate::daemon::Daemon;

/// How often the store is checked, and the shortest time between two log lines.
const EVERY: Duration = Duration::from_secs(1);

/// Watches the store until the returned set is dropped. The memory store is always available.
pub(crate) fn start(daemon: &Arc<Daemon>) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    if let Some(store) = daemon.limiter().as_redis() {
        tasks.spawn(watch(Arc::clone(daemon), store.clone()));
    }
    tasks
}

async fn watch(daemon: Arc<Daemon>, store: RedisStore) {
    let mut ticks = interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut watched, mut is_warned) = (Watched::default(), false);
    loop {
        ticks.tick().await;
        let ready = store.ready().await.map_err(|error| error.to_string());
        let stats = daemon.limiter().stats();
        let without = stats.degraded_allowed + stats.degraded_denied;
        let why = || stats.last_failure.as_ref().map(ToString::to_string).unwrap_or_default();
        let news = watched.look(ready, without);
        daemon.store_seen(watched.known == Known::There);
        match news {
            Some(News::There) => tracing::info!("store available"),
            Some(News::Away(why)) => tracing::error!("store unavailable: {why}"),
            Some(News::Late) => {
                tracing::error!("store connected but not responding: {}", why());
            }
            Some(News::Back(made)) => {
                tracing::info!("store available again; {made} checks were decided without it");
            }
            None => {}
        }
        if watched.known == Known::There && !is_warned {
            is_warned = true;
            for warning in store.warnings().await {
                tracing::warn!("{warning}");
            }
        }
    }
}

/// The known state of the store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Known {
    #[default]
    Nothing,
    There,
    Away {
        /// The number of checks decided without the store before it became unavailable.
        since: u64,
    },
}

/// A change to report.
#[derive(Clone, Debug, PartialEq, Eq)]
enum News {
    There,
    Away(String),
    /// It is connected but does not respond in time.
    Late,
    /// It is available again, after this many checks decided without it.
    Back(u64),
}

/// The store at the last check.
#[derive(Clone, Debug, Default)]
struct Watched {
    known: Known,
    /// The number of checks decided without the store by then.
    without: u64,
}

impl Watched {
    fn look(&mut self, ready: Result<(), String>, without: u64) -> Option<News> {
        let before = std::mem::replace(&mut self.without, without);
        let is_late = without > before;
        let (known, news) = match (self.known, ready) {
            (Known::Away { since }, Ok(())) if !is_late => {
                (Known::There, News::Back(without.saturating_sub(since)))
            }
            (Known::Away { .. }, _) => return None,
            (_, Err(why)) => (Known::Away { since: before }, News::Away(why)),
            (_, Ok(())) if is_late => (Known::Away { since: before }, News::Late),
            (Known::Nothing, Ok(())) => (Known::There, News::There),
            (Known::There, Ok(())) => return None,
        };
        self.known = known;
        Some(news)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_change_of_availability_is_reported_once() {
        let away = || Err("no route".to_owned());
        let mut watched = Watched::default();
        for (ready, without, news) in [
            (Ok(()), 0, Some(News::There)),
            (Ok(()), 0, None),
            (away(), 3, Some(News::Away("no route".to_owned()))),
            (away(), 9, None),
            // Connected again, but responses are still late.
            (Ok(()), 12, None),
            (Ok(()), 12, Some(News::Back(12))),
            (Ok(()), 13, Some(News::Late)),
            (Ok(()), 13, Some(News::Back(1))),
            (Ok(()), 13, None),
        ] {
            assert_eq!(watched.look(ready.clone(), without), news, "{ready:?} {without}");
        }
        let mut never_there = Watched::default();
        assert_eq!(never_there.look(away(), 0), Some(News::Away("no route".to_owned())));
        assert_eq!(never_there.look(Ok(()), 0), Some(News::Back(0)));
    }
}
