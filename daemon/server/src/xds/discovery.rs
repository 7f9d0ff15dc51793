//! How it stands with the control plane, for whoever asks.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// How it stands with the control plane that the configuration is taken from, if it is.
#[derive(Debug, Default)]
pub(crate) struct Discovery {
    /// The server; nothing where no configuration is taken from one.
    server: OnceLock<Arc<str>>,
    /// Whether none of its configurations holds yet.
    awaited: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    is_connected: bool,
    /// Why the last connection ended, or none was made, if nothing has come since.
    lost: Option<Arc<str>>,
    /// Why what the server sent last does not hold, if so.
    refusal: Option<Arc<str>>,
    accepted: u64,
    refused: u64,
}

/// That no configuration has come yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Awaited;

impl Discovery {
    /// From now on a configuration is awaited from this server.
    pub(crate) fn begin(&self, server: &str) {
        self.server.get_or_init(|| server.into());
        self.awaited.store(true, Ordering::Release);
    }

    /// Whether the limits are known.
    ///
    /// # Errors
    /// They are those of a server that has not said them yet.
    pub(crate) fn known(&self) -> Result<(), Awaited> {
        // Most have none, and are not to wait for each other.
        let is_awaited = self.server.get().is_some() && self.awaited.load(Ordering::Acquire);
        if is_awaited { Err(Awaited) } else { Ok(()) }
    }

    pub(super) fn connected(&self) {
        self.lock().is_connected = true;
    }

    /// Whether that is news.
    pub(super) fn lost(&self, why: &str) -> bool {
        let mut state = self.lock();
        let is_news = state.is_connected || state.lost.as_deref() != Some(why);
        (state.is_connected, state.lost) = (false, Some(why.into()));
        is_news
    }

    pub(super) fn accepted(&self) {
        let mut state = self.lock();
        state.accepted = state.accepted.saturating_add(1);
        (state.lost, state.refusal) = (None, None);
        self.awaited.store(false, Ordering::Release);
    }

    /// Whether that is news.
    pub(super) fn refused(&self, why: &str) -> bool {
        let mut state = self.lock();
        state.refused = state.refused.saturating_add(1);
        let is_news = state.refusal.as_deref() != Some(why);
        (state.lost, state.refusal) = (None, Some(why.into()));
        is_news
    }

    /// What is amiss, if anything is; nothing at all where there is no server.
    pub(crate) fn amiss(&self) -> Option<Option<String>> {
        let server = self.server.get()?;
        let state = self.lock();
        let mut all = Vec::new();
        if self.known() == Err(Awaited) {
            all.push(format!("no configuration has come from {server} yet"));
        }
        if let Some(why) = &state.refusal {
            all.push(format!("what {server} sent last is refused: {why}"));
        }
        if let Some(why) = &state.lost {
            all.push(match state.is_connected {
                true => format!("{server} is back and has said nothing since: {why}"),
                false => format!("{server} is away: {why}"),
            });
        }
        Some((!all.is_empty()).then(|| all.join("\n")))
    }

    /// The configurations that came, by what became of them.
    pub(crate) fn by_result(&self) -> [(&'static str, u64); 2] {
        let state = self.lock();
        [("success", state.accepted), ("failure", state.refused)]
    }

    pub(crate) fn is_connected(&self) -> bool {
        self.lock().is_connected
    }

    /// What is in it is never half done.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_amiss_is_told_until_it_is_mended() {
        let discovery = Discovery::default();
        assert_eq!((discovery.known(), discovery.amiss()), (Ok(()), None));
        discovery.begin("h:1");
        let said = |x: &[&str]| Some((!x.is_empty()).then(|| x.join("\n")));
        let none = "no configuration has come from h:1 yet";
        assert_eq!((discovery.known(), discovery.amiss()), (Err(Awaited), said(&[none])));
        assert_eq!(["no route", "no route"].map(|it| discovery.lost(it)), [true, false]);
        assert_eq!(discovery.amiss(), said(&[none, "h:1 is away: no route"]));
        discovery.connected();
        let silent = "h:1 is back and has said nothing since: no route";
        assert_eq!(discovery.amiss(), said(&[none, silent]));
        assert_eq!(["bad", "bad", "worse"].map(|it| discovery.refused(it)), [true, false, true]);
        assert_eq!(discovery.amiss(), said(&[none, "what h:1 sent last is refused: worse"]));
        discovery.accepted();
        assert_eq!((discovery.known(), discovery.amiss()), (Ok(()), said(&[])));
        assert!(discovery.lost("no route"));
        // What it said still holds.
        assert_eq!(discovery.known(), Ok(()));
        assert_eq!(discovery.by_result(), [("success", 1), ("failure", 3)]);
    }
}
