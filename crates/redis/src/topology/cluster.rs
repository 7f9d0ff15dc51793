//! Discovery of the slots of a cluster.

use std::sync::{Arc, Mutex, PoisonError};

use tollgate_store::{Failure, FailureKind};

use super::discovery::first_success;
use super::partition_check::PartitionCheck;
use super::slot_map::SlotMap;
use crate::context::StoreContext;
use crate::url::Address;

#[derive(Debug)]
pub(crate) struct ClusterDiscovery {
    context: Arc<StoreContext>,
    seeds: Vec<Address>,
    /// The nodes of the last discovery.
    known: Mutex<Vec<Address>>,
    partition_check: PartitionCheck,
}

impl ClusterDiscovery {
    pub(crate) fn new(context: &Arc<StoreContext>, seeds: Vec<Address>) -> Self {
        let partition_check = PartitionCheck::new(&context.options);
        let context = Arc::clone(context);
        ClusterDiscovery { context, seeds, known: Mutex::default(), partition_check }
    }

    /// Queries all known nodes concurrently and uses the first answer, so that an unreachable node
    /// causes no delay.
    pub(super) async fn discover(&self) -> Result<SlotMap, Failure> {
        let mut nodes = self.known.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for seed in &self.seeds {
            if !nodes.contains(seed) {
                nodes.push(seed.clone());
            }
        }
        let slots = fetch_slots(&self.context, &nodes).await?;
        self.partition_check.run(&self.context, &slots).await?;
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = slots.nodes.clone();
        Ok(slots)
    }
}

/// Returns the slots according to the first node that answers.
pub(crate) async fn fetch_slots(
    context: &StoreContext,
    nodes: &[Address],
) -> Result<SlotMap, Failure> {
    first_success(nodes.iter().map(|node| fetch_slots_from(context, node))).await
}

async fn fetch_slots_from(context: &StoreContext, node: &Address) -> Result<SlotMap, Failure> {
    let connection = context.dialer.dial(node, || ()).await?;
    let reply = connection.command(&["CLUSTER", "SLOTS"]).await;
    let reply = reply.map_err(|error| error.failure())?;
    SlotMap::from_reply(&reply, node)
        .ok_or_else(|| Failure::new(FailureKind::ClusterDown, format!("{node} reports no slots")))
}
