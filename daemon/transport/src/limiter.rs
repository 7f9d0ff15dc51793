//! The limits on the connections of a listener and of an address, and eviction.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use slab::Slab;
use tokio::sync::Notify;
use tokio::time::timeout;
use tollgate::Timestamp;
use tollgate_engine::{Authentication, Counter, LogThrottle, PeerAddress};
use tollgate_state::Clock;

use crate::idle::{Eviction, IdleTracker};

/// The connections that are examined to find one to evict: a client that opens connections quickly
/// must not cause a scan of all of them each time.
const MAX_EXAMINED: usize = 128;
/// The time between attempts to evict a connection: others become evictable meanwhile, and a reload
/// may raise the limit.
const RETRY_INTERVAL: Duration = Duration::from_millis(10);

/// The limits on the connections of a listener.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionLimits {
    /// The most connections.
    pub total: usize,
    /// Whether clients authenticate, so that a part of the connections is reserved for those that
    /// have.
    pub has_tokens: bool,
}

impl ConnectionLimits {
    /// The most connections whose clients have not authenticated.
    fn unauthenticated(&self) -> usize {
        match self.total {
            0 | 1 => self.total,
            total => total - (total / 10).max(1),
        }
    }
}

/// The connections of a listener.
#[derive(Debug, Default)]
pub struct ConnectionLimiter {
    open: Mutex<OpenConnections>,
    closed: Notify,
    /// Connections whose clients have not authenticated.
    unauthenticated: Arc<AtomicUsize>,
    refusals: LogThrottle,
    /// Connections over the limit of their address.
    refused: Counter,
    /// All connections so far.
    accepted: Counter,
    /// TLS handshakes that failed or timed out.
    failed_handshakes: Counter,
    /// Evicted connections.
    evicted: Counter,
}

#[derive(Debug, Default)]
struct OpenConnections {
    trackers: Slab<Arc<IdleTracker>>,
    /// The number of connections of each address.
    by_peer: HashMap<IpAddr, usize>,
    /// The index where the next search begins.
    next: usize,
}

/// The numbers of connections so far.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionTotals {
    /// Accepted connections.
    pub accepted: u64,
    /// TLS handshakes that failed or timed out.
    pub failed_handshakes: u64,
    /// Evicted connections.
    pub evicted: u64,
    /// Connections over the limit of their address.
    pub refused: u64,
}

/// The permit of a connection, returned when it is dropped.
#[derive(Debug)]
pub struct ConnectionPermit {
    limiter: Arc<ConnectionLimiter>,
    index: usize,
    address: Option<IpAddr>,
}

impl ConnectionLimiter {
    // The connections are valid after every single update.
    fn lock(&self) -> MutexGuard<'_, OpenConnections> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The tracker of a new connection.
    pub fn new_tracker(&self, clock: Clock) -> IdleTracker {
        let authentication = Authentication::new(Arc::clone(&self.unauthenticated));
        IdleTracker::new(clock, Arc::new(authentication))
    }

    /// Whether an address may open another connection. Counts and logs those that may not.
    pub fn admits(&self, peer: PeerAddress, limit: usize, now: Timestamp) -> bool {
        let Some(address) = counted_address(peer) else { return true };
        let count = self.lock().by_peer.get(&address).copied().unwrap_or(0);
        if count < limit {
            return true;
        }
        self.refused.increment();
        if let Some((refusals, total)) = self.refusals.count(now) {
            let remedy = "raise limits.peer_connections if it is a gateway";
            tracing::warn!(%peer, refusals, all = total, limit, "too many connections; {remedy}");
        }
        false
    }

    /// Adds a connection, whether or not a limit is reached.
    pub fn add(self: &Arc<Self>, tracker: Arc<IdleTracker>, peer: PeerAddress) -> ConnectionPermit {
        self.accepted.increment();
        let address = counted_address(peer);
        let mut open = self.lock();
        if let Some(address) = address {
            *open.by_peer.entry(address).or_default() += 1;
        }
        let index = open.trackers.insert(tracker);
        ConnectionPermit { limiter: Arc::clone(self), index, address }
    }

    /// Whether there are as many connections as the limits permit.
    pub fn is_full(&self, limits: &ConnectionLimits) -> bool {
        self.count() >= limits.total || self.is_full_of_unauthenticated(limits)
    }

    fn is_full_of_unauthenticated(&self, limits: &ConnectionLimits) -> bool {
        let count = self.unauthenticated.load(Ordering::Relaxed);
        limits.has_tokens && count >= limits.unauthenticated()
    }

    /// Waits until there are fewer connections than the limits, and evicts some meanwhile.
    pub async fn wait(&self, limits: impl Fn() -> ConnectionLimits) {
        loop {
            let current = limits();
            if !self.is_full(&current) {
                return;
            }
            let is_evicting = self.evict_one(&current);
            tracing::debug!(is_evicting, "connection limit reached");
            // The limits are checked again after a closed connection and after a timeout.
            let _ = timeout(RETRY_INTERVAL, self.closed.notified()).await;
        }
    }

    /// Asks the connection with the greatest eviction priority to close, if there is one: the oldest
    /// one that has not authenticated, even if it is busy, or else one that is idle.
    fn evict_one(&self, limits: &ConnectionLimits) -> bool {
        let only_unauthenticated = self.is_full_of_unauthenticated(limits);
        let mut open = self.lock();
        let capacity = open.trackers.capacity().max(1);
        let first = open.next;
        open.next = first.wrapping_add(MAX_EXAMINED) % capacity;
        let candidate = (0..capacity.min(MAX_EXAMINED))
            .filter_map(|n| open.trackers.get(first.wrapping_add(n) % capacity))
            .filter_map(|tracker| {
                let eviction = if limits.has_tokens && !tracker.is_authenticated() {
                    Eviction::Unauthenticated
                } else {
                    Eviction::Idle
                };
                let is_candidate = tracker.is_evictable(eviction)
                    && (eviction == Eviction::Unauthenticated || !only_unauthenticated);
                is_candidate.then_some((eviction, tracker))
            })
            .max_by_key(|(eviction, tracker)| tracker.eviction_priority(*eviction));
        let Some((eviction, tracker)) = candidate else { return false };
        self.evicted.increment();
        tracker.evict(eviction);
        true
    }

    /// Wakes every connection, to check its timeouts and whether the daemon stops.
    pub fn notify_all(&self) {
        for (_, tracker) in &self.lock().trackers {
            tracker.notify();
        }
    }

    /// Counts a TLS handshake that failed.
    pub fn count_failed_handshake(&self) {
        self.failed_handshakes.increment();
    }

    /// The number of open connections.
    pub fn count(&self) -> usize {
        self.lock().trackers.len()
    }

    /// The numbers of connections so far.
    pub fn totals(&self) -> ConnectionTotals {
        ConnectionTotals {
            accepted: self.accepted.get(),
            failed_handshakes: self.failed_handshakes.get(),
            evicted: self.evicted.get(),
            refused: self.refused.get(),
        }
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let mut open = self.limiter.lock();
        open.trackers.remove(self.index);
        if let Some(address) = self.address
            && let Some(count) = open.by_peer.get_mut(&address)
        {
            *count -= 1;
            if *count == 0 {
                open.by_peer.remove(&address);
            }
        }
        drop(open);
        self.limiter.closed.notify_one();
    }
}

/// The address that connections of a peer are counted under: of IPv6 its network of 64 bits, which
/// usually belongs to one machine. Peers on a Unix socket have none.
fn counted_address(peer: PeerAddress) -> Option<IpAddr> {
    let PeerAddress::Tcp(address) = peer else { return None };
    Some(match address.ip().to_canonical() {
        IpAddr::V6(address) => {
            const NETWORK: u128 = !0 << 64;
            Ipv6Addr::from_bits(address.to_bits() & NETWORK).into()
        }
        address @ IpAddr::V4(_) => address,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(text: &str) -> PeerAddress {
        PeerAddress::Tcp(text.parse().unwrap())
    }

    fn add(limiter: &Arc<ConnectionLimiter>, address: &str) -> ConnectionPermit {
        limiter.add(Arc::new(limiter.new_tracker(Clock::system())), peer(address))
    }

    #[tokio::test]
    async fn a_connection_waits_until_another_closes_or_the_limit_rises() {
        let limiter = Arc::new(ConnectionLimiter::default());
        let limit = AtomicUsize::new(2);
        let wait = || {
            let total = || limit.load(Ordering::Relaxed);
            limiter.wait(move || ConnectionLimits { total: total(), has_tokens: false })
        };
        let add = || add(&limiter, "127.0.0.1:1");
        wait().await;
        let first = add();
        wait().await;
        let second = add();
        assert!(timeout(RETRY_INTERVAL * 2, wait()).await.is_err(), "the limit is reached");
        drop(first);
        wait().await;
        let third = add();
        limit.store(3, Ordering::Relaxed);
        wait().await;
        drop((second, third));
        assert_eq!((limiter.count(), limiter.totals().accepted), (0, 3));
    }

    #[test]
    fn connections_are_counted_by_address_and_by_network_of_ipv6() {
        let limiter = Arc::new(ConnectionLimiter::default());
        let now = Timestamp::from_micros(1);
        let open = ["10.0.0.1:1", "[::ffff:10.0.0.1]:2", "[2001:db8::1]:1", "[2001:db8::2]:1"];
        let open = open.map(|address| add(&limiter, address));
        for (address, is_admitted) in [
            ("10.0.0.1:3", false),
            ("10.0.0.2:3", true),
            ("[2001:db8::3]:3", false),
            ("[2001:db8:0:1::3]:3", true),
        ] {
            assert_eq!(limiter.admits(peer(address), 2, now), is_admitted, "{address}");
        }
        assert!(limiter.admits(PeerAddress::Unix, 0, now));
        drop(open);
        assert!(limiter.admits(peer("10.0.0.1:3"), 2, now));
        assert!(limiter.lock().by_peer.is_empty());
        assert_eq!(limiter.totals().refused, 2);
    }

    #[test]
    fn a_tenth_is_reserved_for_authenticated_clients() {
        for (total, expected) in [(1, 1), (2, 1), (20, 18), (10_000, 9_000)] {
            let limits = ConnectionLimits { total, has_tokens: true };
            assert_eq!(limits.unauthenticated(), expected);
        }
    }
}
