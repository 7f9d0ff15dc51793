//! Redirections of a cluster while a slot is migrated.

use tollgate_simulator::{Connection, Simulation, World};
use tollgate_testkit::{Cluster, slot_of};

use super::{assert_no_differences, difference, is_comparable, send};

/// A real and a simulated cluster of three primaries, with a connection to each node: the source of
/// the slot, its target, and the third node.
struct Clusters {
    real: Vec<tollgate_testkit::Connection>,
    real_addresses: Vec<String>,
    simulated: Vec<Connection>,
    simulated_addresses: Vec<String>,
    differences: Vec<String>,
}

const ROLES: [&str; 3] = ["SOURCE", "TARGET", "THIRD"];

impl Clusters {
    /// Sends commands to nodes, each as `NODE COMMAND`, and compares the replies.
    async fn compare(&mut self, lines: &[&str]) {
        for line in lines {
            let (role, command) = line.split_once(' ').unwrap();
            let node = ROLES.iter().position(|name| *name == role).unwrap();
            let sent = send(command, &mut self.real[node], &mut self.simulated[node]).await;
            let real = normalize(format!("{:?}", sent.0), &self.real_addresses);
            let simulated = normalize(format!("{:?}", sent.1), &self.simulated_addresses);
            self.differences.extend(difference(line, &real, &simulated));
        }
    }
}

impl Clusters {
    /// Compares the knowledge of each node.
    async fn compare_nodes(&mut self) {
        for (role, (real, simulated)) in
            ROLES.iter().zip(self.real.iter_mut().zip(&mut self.simulated))
        {
            let words = ["CLUSTER", "NODES"];
            let real = nodes(&real.command(&words).unwrap().text(), &self.real_addresses);
            let simulated = simulated.command(&words).await.unwrap().text();
            let simulated = nodes(&simulated, &self.simulated_addresses);
            self.differences.extend(difference(role, &real, &simulated));
        }
    }
}

/// Replaces what differs between clusters in the reply to `CLUSTER NODES`: ids, ports of the bus, and
/// times.
fn nodes(reply: &str, addresses: &[String]) -> String {
    let mut text = normalize(reply.to_owned(), addresses);
    for line in reply.lines() {
        let fields: Vec<&str> = line.split(' ').collect();
        let (address, bus) = fields[1].split_once('@').unwrap();
        text = text.replace(fields[0], &normalize(address.to_owned(), addresses));
        text = text.replace(&format!("@{bus}"), "");
        text = text.replace(&format!(" {} {} ", fields[4], fields[5]), " ");
    }
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines.join("\n    ")
}

/// Replaces the addresses of nodes by their roles.
fn normalize(mut text: String, addresses: &[String]) -> String {
    for (address, role) in addresses.iter().zip(ROLES) {
        text = text.replace(address, role);
    }
    text
}

const BEFORE: &[&str] = &[
    "THIRD GET {t}a",
    "TARGET SET {t}a 1",
    "SOURCE SET {t}a 1",
    "SOURCE SET {t}b 2",
    "SOURCE SET {t}z 3",
    "SOURCE MGET {t}a {t}b",
    "SOURCE MGET {t}a {other}b",
    "THIRD MGET {t}a {other}b",
    "TARGET ASKING",
    "TARGET GET {t}a",
    "SOURCE SELECT 0",
    "SOURCE SELECT 1",
    "SOURCE ASKING",
    "SOURCE PING",
    "SOURCE RUN 'return redis.call(\"GET\", KEYS[1])' 1 {t}a",
    "THIRD RUN 'return redis.call(\"GET\", KEYS[1])' 1 {t}a",
    "THIRD RUN 'return redis.call(\"GET\", ARGV[1])' 0 {t}a",
    "SOURCE RUN 'return redis.call(\"GET\", KEYS[1])' 2 {t}a {other}",
    "THIRD RUN 'return redis.call(\"PING\")' 0",
    "SOURCE EVALSHA 0123456789012345678901234567890123456789 1 {t}a",
    "THIRD EVALSHA 0123456789012345678901234567890123456789 1 {t}a",
];

const DURING: &[&str] = &[
    "SOURCE GET {t}a",
    "SOURCE GET {t}new",
    "SOURCE SET {t}new x",
    "SOURCE MGET {t}a {t}b",
    "SOURCE MGET {t}a {t}new",
    "SOURCE MGET {t}new {t}newer",
    "SOURCE MGET {t}new {t}new",
    "SOURCE DEL {t}a {t}new",
    "TARGET GET {t}a",
    "TARGET MGET {t}a {t}b",
    "THIRD GET {t}a",
    "TARGET ASKING",
    "TARGET GET {t}a",
    "TARGET GET {t}a",
    "TARGET ASKING",
    "TARGET MGET {t}a {t}a",
    "TARGET ASKING",
    "TARGET MGET {t}a {t}b",
    "TARGET ASKING",
    "TARGET MGET {t}a {other}b",
    "THIRD ASKING",
    "THIRD GET {t}a",
    "SOURCE RUN 'return redis.call(\"GET\", KEYS[1])' 1 {t}b",
    "SOURCE RUN 'return redis.call(\"GET\", KEYS[1])' 1 {t}new",
    "SOURCE RUN 'return redis.call(\"GET\", KEYS[1])' 2 {t}b {t}new",
    "SOURCE RUN 'return redis.call(\"GET\", \"{t}new\")' 1 {t}b",
    "SOURCE RUN 'redis.call(\"DEL\", KEYS[1])\\nreturn redis.call(\"SET\", KEYS[1], 3)' 1 {t}z",
    "SOURCE GET {t}z",
    "TARGET SCRIPT LOAD '#!lua\\nreturn {redis.call(\"SET\", KEYS[1], 4), redis.pcall(\"SET\", \"{t}undeclared\", 5)}'",
    "TARGET EVALSHA 23ec25257db2e4cf16e5617672ef4045a9afddf0 1 {t}c",
    "TARGET ASKING",
    "TARGET EVALSHA 23ec25257db2e4cf16e5617672ef4045a9afddf0 1 {t}c",
    "TARGET ASKING",
    "TARGET EVALSHA 23ec25257db2e4cf16e5617672ef4045a9afddf0 2 {t}c {t}none",
];

const PARTLY: &[&str] = &[
    "SOURCE GET {t}a",
    "SOURCE MGET {t}a {t}b",
    "SOURCE GET {t}b",
    "SOURCE RUN 'return redis.call(\"GET\", KEYS[1])' 2 {t}a {t}b",
    "TARGET ASKING",
    "TARGET GET {t}a",
    "TARGET ASKING",
    "TARGET MGET {t}a {t}b",
    "TARGET ASKING",
    "TARGET SET {t}e 1",
    "THIRD GET {t}a",
];

const AFTER: &[&str] = &[
    "SOURCE GET {t}a",
    "THIRD GET {t}a",
    "TARGET GET {t}a",
    "TARGET MGET {t}a {t}b {t}e",
    "SOURCE ASKING",
    "SOURCE GET {t}a",
];

#[test]
fn redirections_while_a_slot_is_migrated() {
    let cluster = Cluster::start(3, 0);
    if !is_comparable(&cluster.nodes()[0]) {
        return;
    }
    Simulation::new(0).run(async |world| compare_migration(&world, &cluster).await);
}

async fn compare_migration(world: &World, real: &Cluster) {
    let slot = slot_of("{t}");
    let source = real.primary_of_slot(slot);
    let nodes = [source, (source + 1) % 3, (source + 2) % 3];
    let (simulated, client) = (world.start_cluster(3, 0), world.start_client());
    assert_eq!(simulated.owner(slot).index(), source, "both have the same shares");
    let mut clusters = Clusters {
        real: nodes.iter().map(|node| real.nodes()[*node].connect()).collect(),
        real_addresses: nodes.iter().map(|node| real.nodes()[*node].address()).collect(),
        simulated: Vec::new(),
        simulated_addresses: Vec::new(),
        differences: Vec::new(),
    };
    for node in nodes {
        let server = world.server(node);
        clusters.simulated.push(client.connect(&server).await.unwrap());
        clusters.simulated_addresses.push(format!("{}:6379", server.host()));
    }
    clusters.compare(BEFORE).await;
    clusters.compare_nodes().await;
    let real_move = real.begin_move(slot, nodes[1]);
    let simulated_move = simulated.begin_move(slot, &world.server(nodes[1]));
    clusters.compare(DURING).await;
    clusters.compare_nodes().await;
    real_move.migrate(&["{t}a"]);
    assert_eq!(simulated_move.move_keys(1), 1);
    clusters.compare(PARTLY).await;
    real_move.migrate_all();
    while simulated_move.move_keys(1) > 0 {}
    real_move.finish();
    simulated_move.finish();
    clusters.compare(AFTER).await;
    clusters.compare_nodes().await;
    assert_no_differences(&clusters.differences);
}
