//! A primary and a replica under the eyes of three sentinels.

use crate::{Reply, Server, wait};

/// The name that the sentinels know the primary by.
const NAME: &str = "mymaster";
const SENTINELS: usize = 3;

/// A primary, a replica, and three sentinels that let the replica take over some two seconds after
/// the primary has gone.
#[derive(Debug)]
pub struct Sentinel {
    servers: Vec<Server>,
    sentinels: Vec<Server>,
}

impl Sentinel {
    /// Starts them, and waits until every sentinel knows all others.
    ///
    /// # Panics
    ///
    /// If they do not come up in time.
    #[track_caller]
    pub fn start() -> Self {
        let primary = Server::start();
        let replicaof = format!("replicaof 127.0.0.1 {}", primary.port());
        let replica = Server::with(|config| config.line(&replicaof));
        let mut sentinels: Vec<Server> = Vec::new();
        for number in 1..=SENTINELS {
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

    /// The two servers; the first began as the primary.
    pub fn servers(&self) -> &[Server] {
        &self.servers
    }

    /// The three sentinels.
    pub fn sentinels(&self) -> &[Server] {
        &self.sentinels
    }

    /// The port of the primary, as the first sentinel that serves has it.
    ///
    /// # Panics
    ///
    /// If none serves.
    #[track_caller]
    pub fn primary_port(&self) -> u16 {
        let serving = self.sentinels.iter().find(|sentinel| sentinel.is_serving());
        serving.and_then(port_by_name).expect("a sentinel serves")
    }

    /// The server that is the primary, as the sentinels have it.
    #[track_caller]
    pub fn primary(&self) -> &Server {
        let port = self.primary_port();
        let primary = self.servers.iter().find(|server| server.port() == port);
        primary.expect("the primary is one of the two")
    }

    /// Kills the primary and returns it; [`settle`](Self::settle) waits until the replica has taken
    /// over.
    #[track_caller]
    pub fn kill_primary(&self) -> &Server {
        let primary = self.primary();
        primary.kill();
        primary
    }

    /// Waits until all sentinels that serve name the same primary, it serves as one, and a replica
    /// that serves is in step with it. Sentinels let some ten seconds go by before they make a replica
    /// of a primary that comes back.
    ///
    /// # Panics
    ///
    /// If it does not come about in time.
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

/// Sentinel `number`, told of all that it would else learn by and by in some ten seconds.
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

/// The line by which a later sentinel knows this one. The earlier ones hear of the later.
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

/// Whether a sentinel has heard of all its fellows and of the replica.
fn knows_all(sentinel: &Server) -> bool {
    let master = sentinel.try_command(&["SENTINEL", "MASTER", NAME]);
    let Ok(Reply::Array(master)) = master else { return false };
    let says = |name: &str, expected: usize| {
        let fields = master.chunks(2);
        let mut values = fields.filter(|field| field.first().is_some_and(|key| key.text() == name));
        values.any(|field| field.get(1).is_some_and(|value| value.text() == expected.to_string()))
    };
    says("num-other-sentinels", SENTINELS - 1) && says("num-slaves", 1)
}

/// The words of `ROLE`.
fn role(server: &Server) -> Vec<String> {
    let Ok(Reply::Array(role)) = server.try_command(&["ROLE"]) else { return Vec::new() };
    let texts = role.iter().filter(|part| !matches!(part, Reply::Array(_)));
    texts.map(Reply::text).collect()
}
