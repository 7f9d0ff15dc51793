//! What is counted of a listener: its connections, and the answers on them.

use hyper::StatusCode;

use super::counter::Counter;

/// Why a connection was not ended by its peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// It was too slow, or too long idle.
    Overdue,
    /// The time to stop was over.
    Drained,
    /// Its protocol was broken, or it was lost.
    Failed,
}

/// What is counted of a listener.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    overdue: Counter,
    drained: Counter,
    failed: Counter,
    informational: Counter,
    success: Counter,
    redirection: Counter,
    client_error: Counter,
    server_error: Counter,
}

impl Traffic {
    /// Counts connections that do not end as their peers would have it.
    pub(crate) fn cuts(&self, many: u64, why: Cut) {
        match why {
            Cut::Overdue => &self.overdue,
            Cut::Drained => &self.drained,
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

    pub(super) fn cut_by_reason(&self) -> [(&'static str, u64); 3] {
        [
            ("overdue", self.overdue.get()),
            ("drained", self.drained.get()),
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
