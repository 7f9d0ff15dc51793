//! The properties of a link between a client and a server.

use std::time::Duration;

use fastrand::Rng;

use super::connection::End;

/// The properties of a link.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Link {
    pub(crate) latency: Duration,
    pub(crate) jitter: Duration,
    pub(crate) splits: bool,
    pub(crate) is_blocked_to_client: bool,
    pub(crate) is_blocked_to_server: bool,
}

impl Link {
    /// Returns the delay of a packet.
    pub(crate) fn delay(&self, rng: &mut Rng) -> Duration {
        let jitter = u64::try_from(self.jitter.as_nanos()).expect("a latency fits u64");
        let jitter = if jitter == 0 { 0 } else { rng.u64(0..=jitter) };
        self.latency + Duration::from_nanos(jitter)
    }

    pub(crate) fn is_blocked(&self, to: End) -> bool {
        match to {
            End::Client => self.is_blocked_to_client,
            End::Server => self.is_blocked_to_server,
        }
    }
}
