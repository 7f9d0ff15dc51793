//! Asking sentinels where the master is.

use std::sync::{Arc, Mutex, PoisonError};

use redis::Value;
use tollgate_store::{Failure, FailureKind};

use super::slots::text;
use super::{Found, first_of};
use crate::link::{Dialer, Link};
use crate::node::Common;
use crate::url::Address;

#[derive(Debug)]
pub(crate) struct Sentinels {
    common: Arc<Common>,
    dialer: Dialer,
    sentinels: Vec<Address>,
    master: Box<str>,
    /// The connection to the one who answered last.
    asked: Mutex<Option<(Address, Arc<Link>)>>,
    /// The master that last said that it is one.
    verified: Mutex<Option<Address>>,
}

impl Sentinels {
    pub(crate) fn new(
        common: &Arc<Common>,
        dialer: Dialer,
        sentinels: Vec<Address>,
        master: Box<str>,
    ) -> Self {
        let common = Arc::clone(common);
        let (asked, verified) = (Mutex::default(), Mutex::default());
        Sentinels { common, dialer, sentinels, master, asked, verified }
    }

    /// Asks the one who answered last; if that is no good, or in doubt, all of them together.
    pub(super) async fn find(&self, is_doubted: bool) -> Result<Found, Failure> {
        let asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((sentinel, link)) = asked.filter(|(_, link)| !link.is_closed()) {
            let found = self.ask(sentinel, link, is_doubted).await;
            if found.is_ok() {
                return found;
            }
        }
        first_of(self.sentinels.iter().map(|sentinel| async {
            let link = self.dialer.dial(sentinel, || ()).await?;
            self.ask(sentinel.clone(), Arc::new(link), is_doubted).await
        }))
        .await
    }

    async fn ask(
        &self,
        sentinel: Address,
        link: Arc<Link>,
        is_doubted: bool,
    ) -> Result<Found, Failure> {
        let words = ["SENTINEL", "GET-MASTER-ADDR-BY-NAME", &self.master];
        let reply = link.command(&words).await.map_err(|error| error.failure())?;
        let master = address(&reply, &sentinel).ok_or_else(|| {
            let message = format!("the sentinel {sentinel} knows no master {:?}", self.master);
            Failure::new(FailureKind::WrongTopology, message)
        })?;
        let known = self.verified.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if is_doubted || known.as_ref() != Some(&master) {
            self.verify(&master).await?;
            *self.verified.lock().unwrap_or_else(PoisonError::into_inner) = Some(master.clone());
        }
        *self.asked.lock().unwrap_or_else(PoisonError::into_inner) = Some((sentinel, link));
        Ok(Found::one(master))
    }

    /// Has the master say itself that it is one: sentinels may be behind.
    async fn verify(&self, master: &Address) -> Result<(), Failure> {
        let link = self.common.dialer.dial(master, || ()).await?;
        match link.command(&["ROLE"]).await {
            Ok(Value::Array(parts)) => match parts.first().and_then(text).as_deref() {
                Some("master") | None => Ok(()),
                Some(role) => {
                    let message = format!("{master}, which sentinels name, says it is a {role}");
                    Err(Failure::new(FailureKind::ReadOnly, message))
                }
            },
            Ok(_) => Ok(()),
            // A user who may not ask is told by the first write.
            Err(error) if error.failure().kind == FailureKind::NoPermission => Ok(()),
            Err(error) => Err(error.failure()),
        }
    }
}

/// `[host, port]`
fn address(reply: &Value, speaker: &Address) -> Option<Address> {
    let Value::Array(parts) = reply else { return None };
    let [host, port] = &parts[..] else { return None };
    Some(Address::at(&text(host)?, text(port)?.parse().ok()?, speaker))
}
