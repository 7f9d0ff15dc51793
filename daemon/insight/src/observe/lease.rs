//! Leases: of several observers, one observes a server.

use std::sync::LazyLock;
use std::time::Duration;

use tokio::time::Instant;
use tollgate_redis::{RedisStore, Script, ScriptReply};
use tollgate_state::{Failure, FailureKind};

use crate::tracked::Tracked;

static LEASE: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("lease.lua")));

/// The length of a lease: another observer takes over this long after the last renewal.
const LEASE_TIME: Duration = Duration::from_secs(5);
/// How much earlier its observer stops writing.
const MARGIN: Duration = Duration::from_secs(1);

/// A request for the lease of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LeaseRequest {
    Hold,
    /// To hold the lease; the notifications of the server arrive.
    Observed,
    Release,
}

/// A lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lease {
    /// When it was renewed.
    pub(super) renewed: Instant,
    /// How long ago the server had last been observed then; absent if none had been.
    pub(super) unobserved: Option<Duration>,
}

impl Lease {
    pub(super) fn is_valid(&self) -> bool {
        self.renewed.elapsed() < LEASE_TIME.saturating_sub(MARGIN)
    }
}

/// Renews or releases the leases of servers. Returns the lease of each, if this observer has it.
///
/// # Errors
/// The store is unavailable.
pub(super) async fn renew(
    store: &RedisStore,
    tracked: &Tracked,
    observer: &str,
    requests: &[(String, LeaseRequest)],
) -> Result<Vec<Option<Lease>>, Failure> {
    let partition = store.partition_of(tracked.name.as_bytes());
    let name = store.extension_name(partition, &tracked.name, "l", b"observers");
    let lease_time = LEASE_TIME.as_millis().to_string();
    let keep = tracked.track.keep.as_millis().to_string();
    let mut arguments = vec![observer.as_bytes(), lease_time.as_bytes(), keep.as_bytes()];
    for (server, request) in requests {
        let request: &[u8] = match request {
            LeaseRequest::Hold => b"hold",
            LeaseRequest::Observed => b"observed",
            LeaseRequest::Release => b"release",
        };
        arguments.extend([server.as_bytes(), request]);
    }
    // A lease that is granted late is valid for a shorter time.
    let renewed = Instant::now();
    let reply = store.run_script(partition, &LEASE, &[name], &arguments).await?;
    let malformed = || Failure::new(FailureKind::Protocol, "the reply to a renewal of leases");
    let ScriptReply::List(list) = reply else { return Err(malformed()) };
    let (pairs, _) = list.as_chunks::<2>();
    if pairs.len() != requests.len() {
        return Err(malformed());
    }
    let lease = |pair: &[ScriptReply; 2]| match pair {
        [ScriptReply::Integer(1), ScriptReply::Integer(unobserved)] => {
            let unobserved = u64::try_from(*unobserved).ok().map(Duration::from_millis);
            Ok(Some(Lease { renewed, unobserved }))
        }
        [ScriptReply::Integer(_), _] => Ok(None),
        _ => Err(malformed()),
    };
    pairs.iter().map(lease).collect()
}
