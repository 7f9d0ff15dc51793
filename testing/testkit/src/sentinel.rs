//! A primary and a replica, monitored by three sentinels.

use crate::{Reply, Server, wait};

/// The name of the monitored primary.
const NAME: &str = "mymaster";
const SENTINEL_COUNT: usize = 3;

/// A primary, a replica, and three sentinels that promote the replica about two seconds after the
/// primary fails.
#[derive(Debug)]
pub struct Sentinel {
    servers: Vec<Server>,
    sentinels: Vec<Server>,
}

impl Sentinel {
    /// Starts the servers and waits until every sentinel knows all others.
    #[track_caller]
    pub fn start() -> Self {
        let primary = Server::start();
        let replicaof = format!("replicaof 127.0.0.1 {}", primary.port());
        let replica = Server::with(|config| config.line(&replicaof));
        let mut sentinels: Vec<Server> = Vec::new();
        for number in 1..=SENTINEL_COUNT {
            let known: Vec<String> = sentinels.iter().map(known_sentinel).collect();
            sentinels.push(sentinel(number, &primary, &replica, &known));
        }
        let sentinel = Self { servers: vec![primary, replica], sentinels };
        sentinel.settle();
        sentinel
    }

    /// `redis+sentinel://127.0.0.1:PORT,127.0.0.1:PORT,127.0.0.1:PORT/mymaster`
    pub fn url(&self) -> String {
        let addresses: Vec<String> = self.sentinels.iter().map(Server::address).collect();
        format!("redis+sentinel://{}/{NAME}", addresses.join(","))
    }

    /// The two servers; the first one starts as the primary.
    pub fn servers(&self) -> &[Server] {
        &self.servers
    }

    /// The three sentinels.
    pub fn sentinels(&self) -> &[Server] {
        &self.sentinels
    }

    /// The port of the primary, according to the first sentinel that responds.
    #[track_caller]
    pub fn primary_port(&self) -> u16 {
        let serving = self.sentinels.iter().find(|sentinel| sentinel.is_serving());
        serving.and_then(port_by_name).expect("a sentinel serves")
    }

    /// The primary, according to the sentinels.
    #[track_caller]
    pub fn primary(&self) -> &Server {
        let port = self.primary_port();
        let primary = self.servers.iter().find(|server| server.port() == port);
        primary.expect("the primary is one of the two")
    }

    /// Kills the primary and returns it; [`settle`](Self::settle) waits for the
    /// promotion of the replica.
    #[track_caller]
    pub fn kill_primary(&self) -> &Server {
        let primary = self.primary();
        primary.kill();
        primary
    }

    /// Waits until all running sentinels name the same primary, that server is a primary, and a
    /// running replica is connected to it. Sentinels wait about ten seconds before they turn a
    /// restarted primary into a replica.
    #[track_caller]
    pub fn settle(&self) {
        if wait::until(|| self.is_settled().then_some(())).is_none() {
            let logs: Vec<String> = self.sentinels.iter().map(Server::log).collect();
            panic!("the sentinels do not agree\n{}", logs.join("\n"));
        }
    }

    fn is_settled(&self) -> bool {
        let serving = || self.sentinels.iter().filter(|sentinel| sentinel.is_serving());
        let mut ports = serving().map(port_by_name);
        let Some(Some(port)) = ports.next() else {
            return false;
        };
        ports.all(|other| other == Some(port))
            && serving().all(knows_all)
            && self.servers.iter().filter(|server| server.is_serving()).all(|server| {
                let role = role(server);
                if server.port() == port {
                    role.first().is_some_and(|role| role == "master")
                } else {
                    role.get(3).is_some_and(|state| state == "connected")
                }
            })
            && self.servers.iter().any(|server| server.port() == port && server.is_serving())
    }
}

/// Starts sentinel `number` with a configuration that lists the other servers; discovering them
/// would take about ten seconds.
#[track_caller]
fn sentinel(number: usize, primary: &Server, replica: &Server, known: &[String]) -> Server {
    Server::with(|config| {
        let config = config
            .sentinel()
            .line(&format!("sentinel myid {}", id(number)))
            .line(&format!("sentinel monitor {NAME} 127.0.0.1 {} 2", primary.port()))
            .line(&format!("sentinel down-after-milliseconds {NAME} 500"))
            .line(&format!("sentinel failover-timeout {NAME} 2000"))
            .line(&format!("sentinel known-replica {NAME} 127.0.0.1 {}", replica.port()));
        known.iter().fold(config, |config, line| config.line(line))
    })
}

/// The configuration line that announces this sentinel to later ones; earlier ones discover later
/// ones.
fn known_sentinel(sentinel: &Server) -> String {
    let id = sentinel.command(&["SENTINEL", "MYID"]).text();
    format!("sentinel known-sentinel {NAME} 127.0.0.1 {} {id}", sentinel.port())
}

fn id(number: usize) -> String {
    format!("{number:040x}")
}

fn port_by_name(sentinel: &Server) -> Option<u16> {
    let reply = sentinel.try_command(&["SENTINEL", "GET-MASTER-ADDR-BY-NAME", NAME]).ok()?;
    let Reply::Array(address) = reply else { return None };
    address.get(1)?.text().parse().ok()
}

/// Whether a sentinel knows all other sentinels and the replica.
fn knows_all(sentinel: &Server) -> bool {
    let master = sentinel.try_command(&["SENTINEL", "MASTER", NAME]);
    let Ok(Reply::Array(master)) = master else { return false };
    let has_count = |name: &str, expected: usize| {
        let fields = master.chunks(2);
        let mut values = fields.filter(|field| field.first().is_some_and(|key| key.text() == name));
        values.any(|field| field.get(1).is_some_and(|value| value.text() == expected.to_string()))
    };
    has_count("num-other-sentinels", SENTINEL_COUNT - 1) && has_count("num-slaves", 1)
}

/// The elements of the reply to `ROLE`; empty if the server does not respond.
fn role(server: &Server) -> Vec<String> {
    let Ok(Reply::Array(role)) = server.try_command(&["ROLE"]) else { return Vec::new() };
    let texts = role.iter().filter(|part| !matches!(part, Reply::Array(_)));
    texts.map(Reply::text).collect()
}
