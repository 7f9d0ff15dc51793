//! What is counted of a listener: its connections, and the answers on them.

use std::sync::Arc;

use hyper::StatusCode;

use super::counter::Counter;
use crate::daemon::Daemon;

/// A listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Listener {
    Http,
    Metrics,
}

impl Listener {
    pub(super) const ALL: [Listener; 2] = [Listener::Http, Listener::Metrics];

    /// The word that stands for it in labels.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Listener::Http => "http",
            Listener::Metrics => "metrics",
        }
    }
}

/// Why a connection was not ended by its peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// It was too slow, or too long idle.
    Overdue,
    /// The time to stop was over.
    Drained,
    /// There was no place for it, or no handshake.
    #[expect(dead_code, reason = "no listener turns anyone away yet")]
    Rejected,
    /// Its protocol was broken, or it was lost.
    Failed,
}

/// What is counted of a listener.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    open: Counter,
    accepted: Counter,
    overdue: Counter,
    drained: Counter,
    rejected: Counter,
    failed: Counter,
    informational: Counter,
    success: Counter,
    redirection: Counter,
    client_error: Counter,
    server_error: Counter,
}

impl Traffic {
    /// Counts a connection that does not end as its peer would have it.
    pub(crate) fn cut(&self, why: Cut) {
        self.cuts(1, why);
    }

    /// Counts several such.
    pub(crate) fn cuts(&self, many: u64, why: Cut) {
        match why {
            Cut::Overdue => &self.overdue,
            Cut::Drained => &self.drained,
            Cut::Rejected => &self.rejected,
            Cut::Failed => &self.failed,
        }
        .add(many);
    }

    /// Counts an answer.
    pub(crate) fn answered(&self, status: StatusCode) {
        match status.as_u16() {
            ..200 => &self.informational,
            200..300 => &self.success,
            300..400 => &self.redirection,
            400..500 => &self.client_error,
            500.. => &self.server_error,
        }
        .count();
    }

    pub(super) fn open(&self) -> u64 {
        self.open.get()
    }

    pub(super) fn accepted(&self) -> u64 {
        self.accepted.get()
    }

    pub(super) fn cut_by_reason(&self) -> [(&'static str, u64); 4] {
        [
            ("overdue", self.overdue.get()),
            ("drained", self.drained.get()),
            ("rejected", self.rejected.get()),
            ("failed", self.failed.get()),
        ]
    }

    pub(super) fn answered_by_class(&self) -> [(&'static str, u64); 5] {
        [
            ("1xx", self.informational.get()),
            ("2xx", self.success.get()),
            ("3xx", self.redirection.get()),
            ("4xx", self.client_error.get()),
            ("5xx", self.server_error.get()),
        ]
    }
}

/// A connection that is open, until this falls.
#[derive(Debug)]
pub(crate) struct Connected(Arc<Daemon>, Listener);

impl Connected {
    pub(crate) fn new(daemon: Arc<Daemon>, listener: Listener) -> Self {
        let traffic = daemon.metrics.traffic(listener);
        traffic.accepted.count();
        traffic.open.count();
        Connected(daemon, listener)
    }
}

impl Drop for Connected {
    fn drop(&mut self) {
        self.0.metrics.traffic(self.1).open.uncount();
    }
}
