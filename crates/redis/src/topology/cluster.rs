//! Asking a cluster which node has which slots.

use std::sync::{Arc, Mutex, PoisonError};

use tollgate_store::{Failure, FailureKind};

use super::groups::GroupsCheck;
use super::{Found, first_of};
use crate::node::Common;
use crate::url::Address;

#[derive(Debug)]
pub(crate) struct Cluster {
    common: Arc<Common>,
    seeds: Vec<Address>,
    /// The nodes of the last answer.
    known: Mutex<Vec<Address>>,
    groups: GroupsCheck,
}

impl Cluster {
    pub(crate) fn new(common: &Arc<Common>, seeds: Vec<Address>) -> Self {
        let groups = GroupsCheck::new(&common.options);
        Cluster { common: Arc::clone(common), seeds, known: Mutex::default(), groups }
    }

    /// Asks all that are known together and takes the first answer: one that is away, or hangs,
    /// keeps nobody waiting.
    pub(super) async fn find(&self) -> Result<Found, Failure> {
        let mut nodes = self.known.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for seed in &self.seeds {
            if !nodes.contains(seed) {
                nodes.push(seed.clone());
            }
        }
        let found = ask_for_slots(&self.common, &nodes).await?;
        self.groups.check(&self.common, &found).await?;
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = found.nodes.clone();
        Ok(found)
    }
}

/// Which node has which slots, as the first of these says who answers.
pub(crate) async fn ask_for_slots(common: &Common, nodes: &[Address]) -> Result<Found, Failure> {
    first_of(nodes.iter().map(|node| ask(common, node))).await
}

async fn ask(common: &Common, node: &Address) -> Result<Found, Failure> {
    let link = common.dialer.dial(node, || ()).await?;
    let reply = link.command(&["CLUSTER", "SLOTS"]).await.map_err(|error| error.failure())?;
    Found::of_reply(&reply, node)
        .ok_or_else(|| Failure::new(FailureKind::ClusterDown, format!("{node} knows of no slots")))
}
