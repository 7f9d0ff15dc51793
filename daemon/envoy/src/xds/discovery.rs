//! The state of the connection to the control plane.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// The state of the connection to the control plane that sends the configuration.
#[derive(Debug, Default)]
pub struct Discovery {
    /// The server; absent without a control plane.
    server: OnceLock<Arc<str>>,
    /// Whether no configuration was accepted yet.
    awaited: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    is_connected: bool,
    /// Why the last connection ended or failed, until a configuration arrives.
    lost: Option<Arc<str>>,
    /// Why the last configuration was rejected.
    refusal: Option<Arc<str>>,
    accepted: u64,
    refused: u64,
}

/// No configuration was received yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoLimits;

impl Discovery {
    /// Waits for a configuration of this server from now on.
    pub fn begin(&self, server: &str) {
        self.server.get_or_init(|| server.into());
        self.awaited.store(true, Ordering::Release);
    }

    /// Checks that the limits are known.
    ///
    /// # Errors
    /// A control plane has not sent them yet.
    pub fn check_limits(&self) -> Result<(), NoLimits> {
        // Most daemons have no control plane, and need no ordering.
        let is_awaited = self.server.get().is_some() && self.awaited.load(Ordering::Acquire);
        if is_awaited { Err(NoLimits) } else { Ok(()) }
    }

    pub(super) fn connected(&self) {
        self.lock().is_connected = true;
    }

    /// Returns whether the reason has changed.
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

    /// Returns whether the reason has changed.
    pub(super) fn refused(&self, why: &str) -> bool {
        let mut state = self.lock();
        state.refused = state.refused.saturating_add(1);
        let is_news = state.refusal.as_deref() != Some(why);
        (state.lost, state.refusal) = (None, Some(why.into()));
        is_news
    }

    /// The current error, if any; absent without a control plane.
    pub fn error(&self) -> Option<Option<String>> {
        let server = self.server.get()?;
        let state = self.lock();
        let mut all = Vec::new();
        if self.check_limits() == Err(NoLimits) {
            all.push(format!("no configuration received from {server} yet"));
        }
        if let Some(why) = &state.refusal {
            all.push(format!("the last configuration of {server} was rejected: {why}"));
        }
        if let Some(why) = &state.lost {
            all.push(match state.is_connected {
                true => format!("{server} is reconnected, without a configuration since: {why}"),
                false => format!("{server} is unavailable: {why}"),
            });
        }
        Some((!all.is_empty()).then(|| all.join("\n")))
    }

    /// The received configurations, by the value of the label `result`.
    pub fn by_result(&self) -> [(&'static str, u64); 2] {
        let state = self.lock();
        [("success", state.accepted), ("failure", state.refused)]
    }

    /// Whether the control plane is connected.
    pub fn is_connected(&self) -> bool {
        self.lock().is_connected
    }

    /// The state is valid after every single update.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_reported_until_it_is_fixed() {
        let discovery = Discovery::default();
        assert_eq!((discovery.check_limits(), discovery.error()), (Ok(()), None));
        discovery.begin("h:1");
        let said = |x: &[&str]| Some((!x.is_empty()).then(|| x.join("\n")));
        let none = "no configuration received from h:1 yet";
        assert_eq!((discovery.check_limits(), discovery.error()), (Err(NoLimits), said(&[none])));
        assert_eq!(["no route", "no route"].map(|it| discovery.lost(it)), [true, false]);
        assert_eq!(discovery.error(), said(&[none, "h:1 is unavailable: no route"]));
        discovery.connected();
        let silent = "h:1 is reconnected, without a configuration since: no route";
        assert_eq!(discovery.error(), said(&[none, silent]));
        assert_eq!(["bad", "bad", "worse"].map(|it| discovery.refused(it)), [true, false, true]);
        assert_eq!(
            discovery.error(),
            said(&[none, "the last configuration of h:1 was rejected: worse"])
        );
        discovery.accepted();
        assert_eq!((discovery.check_limits(), discovery.error()), (Ok(()), said(&[])));
        assert!(discovery.lost("no route"));
        // Its last configuration is still active.
        assert_eq!(discovery.check_limits(), Ok(()));
        assert_eq!(discovery.by_result(), [("success", 1), ("failure", 3)]);
    }
}
