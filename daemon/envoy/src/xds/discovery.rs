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
    /// Why the last connection failed or ended, until a configuration arrives.
    lost: Option<Arc<str>>,
    /// Why the last configuration was rejected.
    rejection: Option<Arc<str>>,
    accepted: u64,
    rejected: u64,
}

/// No configuration was received yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoLimits;

impl Discovery {
    /// Starts to wait for a configuration of this server.
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

    /// Returns whether the reason is new.
    pub(super) fn lost(&self, reason: &str) -> bool {
        let mut state = self.lock();
        let is_new = state.is_connected || state.lost.as_deref() != Some(reason);
        (state.is_connected, state.lost) = (false, Some(reason.into()));
        is_new
    }

    pub(super) fn accepted(&self) {
        let mut state = self.lock();
        state.accepted = state.accepted.saturating_add(1);
        (state.lost, state.rejection) = (None, None);
        self.awaited.store(false, Ordering::Release);
    }

    /// Returns whether the reason is new.
    pub(super) fn rejected(&self, reason: &str) -> bool {
        let mut state = self.lock();
        state.rejected = state.rejected.saturating_add(1);
        let is_new = state.rejection.as_deref() != Some(reason);
        (state.lost, state.rejection) = (None, Some(reason.into()));
        is_new
    }

    /// The current error, if any; absent without a control plane.
    pub fn error(&self) -> Option<Option<String>> {
        let server = self.server.get()?;
        let state = self.lock();
        let mut all = Vec::new();
        if self.check_limits() == Err(NoLimits) {
            all.push(format!("no configuration received from {server} yet"));
        }
        if let Some(reason) = &state.rejection {
            all.push(format!("the last configuration of {server} was rejected: {reason}"));
        }
        if let Some(reason) = &state.lost {
            all.push(match state.is_connected {
                true => format!("{server} is reconnected, without a configuration since: {reason}"),
                false => format!("{server} is unavailable: {reason}"),
            });
        }
        Some((!all.is_empty()).then(|| all.join("\n")))
    }

    /// The received configurations, by the value of the label `result`.
    pub fn by_result(&self) -> [(&'static str, u64); 2] {
        let state = self.lock();
        [("success", state.accepted), ("failure", state.rejected)]
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
    fn an_error_is_reported_until_a_configuration_is_accepted() {
        let discovery = Discovery::default();
        assert_eq!((discovery.check_limits(), discovery.error()), (Ok(()), None));
        discovery.begin("h:1");
        let errors = |lines: &[&str]| Some((!lines.is_empty()).then(|| lines.join("\n")));
        let none = "no configuration received from h:1 yet";
        assert_eq!((discovery.check_limits(), discovery.error()), (Err(NoLimits), errors(&[none])));
        assert_eq!(["no route", "no route"].map(|reason| discovery.lost(reason)), [true, false]);
        assert_eq!(discovery.error(), errors(&[none, "h:1 is unavailable: no route"]));
        discovery.connected();
        let silent = "h:1 is reconnected, without a configuration since: no route";
        assert_eq!(discovery.error(), errors(&[none, silent]));
        assert_eq!(
            ["bad", "bad", "worse"].map(|reason| discovery.rejected(reason)),
            [true, false, true]
        );
        assert_eq!(
            discovery.error(),
            errors(&[none, "the last configuration of h:1 was rejected: worse"])
        );
        discovery.accepted();
        assert_eq!((discovery.check_limits(), discovery.error()), (Ok(()), errors(&[])));
        assert!(discovery.lost("no route"));
        // The last configuration is still active.
        assert_eq!(discovery.check_limits(), Ok(()));
        assert_eq!(discovery.by_result(), [("success", 1), ("failure", 3)]);
    }
}
