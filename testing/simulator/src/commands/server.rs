//! Commands on the server: its time, its role, the cluster, and what a sentinel knows.

use tollgate_testkit::Reply;

use super::{Context, NO_CLUSTER, Outcome, bulk};
use crate::slots::{address_of, node_id};

/// The version that the simulation reproduces.
pub(super) const VERSION: &str = "7.0.15";

pub(super) fn time(context: &mut Context<'_>, _: &[Vec<u8>]) -> Outcome {
    let now = context.node.now_micros();
    let (seconds, micros) = (now / 1_000_000, now % 1_000_000);
    Ok(Reply::Array(vec![bulk(seconds.to_string()), bulk(micros.to_string())]))
}

pub(super) fn info(context: &mut Context<'_>, _: &[Vec<u8>]) -> Outcome {
    let node = &context.node;
    let mut text = format!(
        "# Server\r\nredis_version:{VERSION}\r\n# Memory\r\nmaxmemory_policy:noeviction\r\n\
         # Persistence\r\nloading:{}\r\n# Replication\r\n",
        u8::from(node.is_loading)
    );
    match node.primary {
        None => text.push_str("role:master\r\n"),
        Some(primary) => {
            let (host, port) = address_of(primary);
            let replica = format!("role:slave\r\nmaster_host:{host}\r\nmaster_port:{port}\r\n");
            text.push_str(&replica);
        }
    }
    let is_cluster = u8::from(node.is_cluster());
    text.push_str(&format!("# Cluster\r\ncluster_enabled:{is_cluster}\r\n"));
    Ok(bulk(text))
}

pub(super) fn role(context: &mut Context<'_>, _: &[Vec<u8>]) -> Outcome {
    let node = &context.node;
    if node.is_sentinel() {
        let names = node.masters.keys().map(bulk).collect();
        return Ok(Reply::Array(vec![bulk("sentinel"), Reply::Array(names)]));
    }
    Ok(Reply::Array(match node.primary {
        None => vec![bulk("master"), Reply::Integer(0), Reply::Array(Vec::new())],
        Some(primary) => {
            let (host, port) = address_of(primary);
            let address = [bulk(host), Reply::Integer(port.into())];
            let state = [bulk("connected"), Reply::Integer(0)];
            [bulk("slave")].into_iter().chain(address).chain(state).collect()
        }
    }))
}

pub(super) fn cluster_myid(context: &mut Context<'_>, _: &[Vec<u8>]) -> Outcome {
    if context.node.is_cluster() { Ok(bulk(node_id(context.node.index))) } else { Err(NO_CLUSTER) }
}

pub(super) fn cluster_info(context: &mut Context<'_>, _: &[Vec<u8>]) -> Outcome {
    let cluster = context.node.cluster.as_ref().ok_or(NO_CLUSTER)?;
    let state = if cluster.is_down() { "fail" } else { "ok" };
    let epochs = cluster.table.members.values().map(|member| member.epoch);
    let assigned: u32 =
        cluster.table.ranges().map(|(range, _)| u32::from(range.end - range.start)).sum();
    Ok(bulk(format!(
        "cluster_enabled:1\r\ncluster_state:{state}\r\ncluster_slots_assigned:{assigned}\r\n\
         cluster_current_epoch:{}\r\n",
        epochs.max().unwrap_or(0)
    )))
}

pub(super) fn cluster_nodes(context: &mut Context<'_>, _: &[Vec<u8>]) -> Outcome {
    let cluster = context.node.cluster.as_ref().ok_or(NO_CLUSTER)?;
    let mut text = String::new();
    for (index, member) in &cluster.table.members {
        let ((host, port), bus) = (address_of(*index), 16_379);
        let is_own = *index == cluster.index;
        // A node knows its own role before others do.
        let primary = if is_own { context.node.primary } else { member.primary };
        let owner = cluster.table.members.get(&primary.unwrap_or(*index));
        let epoch = owner.map_or(0, |owner| owner.epoch);
        let flags = format!(
            "{}{}",
            if is_own { "myself," } else { "" },
            if primary.is_some() { "slave" } else { "master" }
        );
        let primary = primary.map_or_else(|| "-".to_owned(), node_id);
        let id = node_id(*index);
        text += &format!("{id} {host}:{port}@{bus} {flags} {primary} 0 0 {epoch} connected");
        for (range, _) in cluster.table.ranges().filter(|(_, owner)| owner == index) {
            text += &match range.len() {
                1 => format!(" {}", range.start),
                _ => format!(" {}-{}", range.start, range.end - 1),
            };
        }
        if is_own {
            text.extend(cluster.migrations());
        }
        text.push('\n');
    }
    Ok(bulk(text))
}

pub(super) fn cluster_slots(context: &mut Context<'_>, _: &[Vec<u8>]) -> Outcome {
    let table = &context.node.cluster.as_ref().ok_or(NO_CLUSTER)?.table;
    let describe = |index: usize| {
        let (host, port) = address_of(index);
        let port = Reply::Integer(port.into());
        Reply::Array(vec![bulk(host), port, bulk(node_id(index)), Reply::Array(Vec::new())])
    };
    let ranges = table.ranges().map(|(range, owner)| {
        let bounds = [range.start, range.end - 1].map(|slot| Reply::Integer(slot.into()));
        let nodes = [owner].into_iter().chain(table.replicas_of(owner));
        Reply::Array(bounds.into_iter().chain(nodes.map(describe)).collect())
    });
    Ok(Reply::Array(ranges.collect()))
}

pub(super) fn get_master_addr_by_name(context: &mut Context<'_>, words: &[Vec<u8>]) -> Outcome {
    let name = String::from_utf8_lossy(&words[2]);
    Ok(match context.node.masters.get(&*name) {
        None => Reply::Null,
        Some(master) => {
            let (host, port) = address_of(*master);
            Reply::Array(vec![bulk(host), bulk(port.to_string())])
        }
    })
}
