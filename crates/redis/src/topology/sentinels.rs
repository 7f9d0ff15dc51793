//! Discovery of a master through Sentinel.

use std::sync::{Arc, Mutex, PoisonError};

use redis::Value;
use tollgate_store::{Failure, FailureKind};

use super::discovery::{first_success, text};
use super::slot_map::SlotMap;
use crate::connection::{Connection, Dialer};
use crate::context::StoreContext;
use crate::url::Address;

#[derive(Debug)]
pub(crate) struct SentinelDiscovery {
    context: Arc<StoreContext>,
    dialer: Dialer,
    sentinels: Vec<Address>,
    master: Box<str>,
    /// The connection to the sentinel that answered last.
    last: Mutex<Option<(Address, Arc<Connection>)>>,
    /// The last server that confirmed that it is a master.
    verified: Mutex<Option<Address>>,
}

impl SentinelDiscovery {
    pub(crate) fn new(
        context: &Arc<StoreContext>,
        dialer: Dialer,
        sentinels: Vec<Address>,
        master: Box<str>,
    ) -> Self {
        let context = Arc::clone(context);
        let (last, verified) = (Mutex::default(), Mutex::default());
        SentinelDiscovery { context, dialer, sentinels, master, last, verified }
    }

    /// Queries the sentinel that answered last; if that fails, all sentinels concurrently.
    pub(super) async fn discover(&self, is_doubted: bool) -> Result<SlotMap, Failure> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((sentinel, connection)) = last.filter(|(_, last)| !last.is_closed()) {
            let master = self.query(sentinel, connection, is_doubted).await;
            if master.is_ok() {
                return master;
            }
        }
        first_success(self.sentinels.iter().map(|sentinel| async {
            let connection = self.dialer.dial(sentinel, || ()).await?;
            self.query(sentinel.clone(), Arc::new(connection), is_doubted).await
        }))
        .await
    }

    async fn query(
        &self,
        sentinel: Address,
        connection: Arc<Connection>,
        is_doubted: bool,
    ) -> Result<SlotMap, Failure> {
        let words = ["SENTINEL", "GET-MASTER-ADDR-BY-NAME", &self.master];
        let reply = connection.command(&words).await.map_err(|error| error.failure())?;
        let master = parse_address(&reply, &sentinel).ok_or_else(|| {
            let message = format!("the sentinel {sentinel} has no master {:?}", self.master);
            Failure::new(FailureKind::WrongTopology, message)
        })?;
        let verified = self.verified.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if is_doubted || verified.as_ref() != Some(&master) {
            self.verify(&master).await?;
            *self.verified.lock().unwrap_or_else(PoisonError::into_inner) = Some(master.clone());
        }
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some((sentinel, connection));
        Ok(SlotMap::single(master))
    }

    /// Checks with the server that it is a master, because a sentinel may be outdated.
    async fn verify(&self, master: &Address) -> Result<(), Failure> {
        let connection = self.context.dialer.dial(master, || ()).await?;
        match connection.command(&["ROLE"]).await {
            Ok(Value::Array(parts)) => match parts.first().and_then(text).as_deref() {
                Some("master") | None => Ok(()),
                Some(role) => {
                    let message = format!("{master} is a {role}, but sentinels report a master");
                    Err(Failure::new(FailureKind::ReadOnly, message))
                }
            },
            Ok(_) => Ok(()),
            // Without the permission, the first write reports a replica.
            Err(error) if error.failure().kind == FailureKind::NoPermission => Ok(()),
            Err(error) => Err(error.failure()),
        }
    }
}

/// Parses `[host, port]`.
fn parse_address(reply: &Value, speaker: &Address) -> Option<Address> {
    let Value::Array(parts) = reply else { return None };
    let [host, port] = &parts[..] else { return None };
    Some(Address::relative_to(speaker, &text(host)?, text(port)?.parse().ok()?))
}
