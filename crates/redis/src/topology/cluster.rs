//! Queries about the slots of a cluster.

use std::collections::HashMap;
use std::sync::Arc;

use tollgate_state::{Failure, FailureKind};

use super::discovery::{first_success, text};
use super::slot_map::{SlotMap, parse_epochs};
use crate::connection::CommandChannel;
use crate::node::Node;
use crate::url::Address;

/// Returns the slots according to the first node that answers, and that node.
pub(super) async fn query(
    nodes: Vec<(Address, CommandChannel)>,
) -> Result<(Address, SlotMap), Failure> {
    first_success(nodes.into_iter().map(async |(node, commands)| {
        let slots = fetch_slots(&commands, &node).await?;
        Ok((node, slots))
    }))
    .await
}

/// Returns the slots according to the first of these nodes that answers.
pub(crate) async fn query_slots(nodes: &[Arc<Node>]) -> Result<SlotMap, Failure> {
    let connected =
        nodes.iter().filter_map(|node| Some((node.address().clone(), node.commands()?)));
    query(connected.collect()).await.map(|(_, slots)| slots)
}

/// Returns the slots according to a node.
async fn fetch_slots(commands: &CommandChannel, node: &Address) -> Result<SlotMap, Failure> {
    let (slots, nodes) = tokio::join!(
        commands.command(&["CLUSTER", "SLOTS"]),
        commands.command(&["CLUSTER", "NODES"]),
    );
    // Without the permission for the epochs, a second node confirms each change.
    let epochs =
        nodes.ok().as_ref().and_then(text).map_or_else(HashMap::new, |text| parse_epochs(&text));
    let slots = slots.map_err(|error| error.failure())?;
    SlotMap::from_reply(&slots, &epochs, node)
        .ok_or_else(|| Failure::new(FailureKind::ClusterDown, format!("{node} reports no slots")))
}
