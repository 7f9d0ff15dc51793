//! Queries about the slots of a cluster.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tollgate_store::{Failure, FailureKind};

use super::discovery::text;
use super::slot_map::{SlotMap, parse_epochs};
use crate::connection::CommandChannel;
use crate::node::Node;
use crate::url::Address;

/// How long a node may take to answer before the next is queried as well.
const PATIENCE: Duration = Duration::from_millis(100);

/// Returns the slots according to the first node that answers, and that node.
pub(super) async fn query(
    nodes: Vec<(Address, CommandChannel)>,
) -> Result<(Address, SlotMap), Failure> {
    super::discovery::first_success(nodes.into_iter().enumerate().map(
        async |(number, (node, commands))| {
            let number = u32::try_from(number).unwrap_or(u32::MAX);
            tokio::time::sleep(PATIENCE.saturating_mul(number)).await;
            let slots = fetch_slots(&commands, &node).await?;
            Ok((node, slots))
        },
    ))
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
