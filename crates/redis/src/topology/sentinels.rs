//! Discovery of a master through Sentinel.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redis::Value;
use tokio::time::Instant;
use tollgate_state::{Failure, FailureKind};

use super::discovery::{first_success, text};
use super::slot_map::SlotMap;
use crate::connection::{CommandChannel, Connection, Dialer};
use crate::url::Address;

/// The sentinels of a master.
#[derive(Debug)]
pub(crate) struct Sentinels {
    dialer: Dialer,
    sentinels: Vec<Address>,
    master: Box<str>,
    /// The connection to the sentinel that answered last.
    last: Mutex<Option<(Address, Connection)>>,
    /// When a connection to each sentinel was last tried.
    dialed: Mutex<BTreeMap<Address, Instant>>,
}

/// The minimum interval between connections to a sentinel.
const DIAL_INTERVAL: Duration = Duration::from_secs(1);

impl Sentinels {
    pub(crate) fn new(dialer: Dialer, sentinels: Vec<Address>, master: Box<str>) -> Self {
        let (last, dialed) = (Mutex::default(), Mutex::default());
        Sentinels { dialer, sentinels, master, last, dialed }
    }

    /// Queries the sentinel that answered last; if that fails, the others. Returns the sentinel that
    /// answered, and the master.
    pub(super) async fn query(&self) -> Result<(Address, SlotMap), Failure> {
        let last = lock(&self.last)
            .as_ref()
            .filter(|(_, connection)| !connection.is_closed())
            .map(|(sentinel, connection)| (sentinel.clone(), connection.commands()));
        if let Some((sentinel, commands)) = last {
            let master = self.query_sentinel(&sentinel, &commands).await;
            if master.is_ok() {
                return master;
            }
        }
        lock(&self.last).take();
        first_success(self.sentinels.iter().map(async |sentinel| {
            self.limit_dials(sentinel).await;
            let connection = self.dialer.dial(sentinel, || ()).await?;
            let master = self.query_sentinel(sentinel, &connection.commands()).await?;
            *lock(&self.last) = Some((sentinel.clone(), connection));
            Ok(master)
        }))
        .await
    }

    /// Returns the connection to the sentinel that answered last.
    pub(crate) fn connection(&self) -> Option<CommandChannel> {
        lock(&self.last).as_ref().map(|(_, connection)| connection.commands())
    }

    /// Waits until a connection to a sentinel may be tried again.
    async fn limit_dials(&self, sentinel: &Address) {
        let last = lock(&self.dialed).get(sentinel).copied();
        if let Some(last) = last {
            tokio::time::sleep_until(last + DIAL_INTERVAL).await;
        }
        lock(&self.dialed).insert(sentinel.clone(), Instant::now());
    }

    async fn query_sentinel(
        &self,
        sentinel: &Address,
        commands: &CommandChannel,
    ) -> Result<(Address, SlotMap), Failure> {
        let words = ["SENTINEL", "GET-MASTER-ADDR-BY-NAME", &self.master];
        let reply = commands.command(&words).await.map_err(|error| error.failure())?;
        let master = parse_address(&reply, sentinel).ok_or_else(|| {
            let message = format!("the sentinel {sentinel} has no master {:?}", self.master);
            Failure::new(FailureKind::WrongTopology, message)
        })?;
        Ok((sentinel.clone(), SlotMap::single(master)))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Parses `[host, port]`.
fn parse_address(reply: &Value, speaker: &Address) -> Option<Address> {
    let Value::Array(parts) = reply else { return None };
    let [host, port] = &parts[..] else { return None };
    Some(Address::relative_to(speaker, &text(host)?, text(port)?.parse().ok()?))
}
