//! Counters of a listener: its connections and the responses on them.

use super::counter::Counter;

/// Why the daemon closed a connection, or lost it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closure {
    /// The client was too slow, or idle for too long.
    Overdue,
    /// The drain timeout expired.
    Drained,
    /// A protocol or network error.
    Failed,
}

/// Counters of a listener.
#[derive(Debug, Default)]
pub struct ListenerCounters {
    overdue: Counter,
    drained: Counter,
    failed: Counter,
    informational: Counter,
    success: Counter,
    redirection: Counter,
    client_error: Counter,
    server_error: Counter,
}

impl ListenerCounters {
    /// Counts connections that the client did not close itself.
    pub fn count_closures(&self, number: u64, reason: Closure) {
        match reason {
            Closure::Overdue => &self.overdue,
            Closure::Drained => &self.drained,
            Closure::Failed => &self.failed,
        }
        .add(number);
    }

    /// Counts a response by its HTTP status.
    pub fn count_response(&self, status: u16) {
        match status {
            ..200 => &self.informational,
            200..300 => &self.success,
            300..400 => &self.redirection,
            400..500 => &self.client_error,
            500.. => &self.server_error,
        }
        .increment();
    }

    /// The closed connections, by the value of the label `reason`.
    #[must_use]
    pub fn closures(&self) -> [(&'static str, u64); 3] {
        [
            ("overdue", self.overdue.get()),
            ("drained", self.drained.get()),
            ("failed", self.failed.get()),
        ]
    }

    /// The responses, by the value of the label `class`.
    #[must_use]
    pub fn responses(&self) -> [(&'static str, u64); 5] {
        [
            ("1xx", self.informational.get()),
            ("2xx", self.success.get()),
            ("3xx", self.redirection.get()),
            ("4xx", self.client_error.get()),
            ("5xx", self.server_error.get()),
        ]
    }
}
