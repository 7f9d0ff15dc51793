//! Makes requests, through the store or with a script over a connection.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use bench::figures::number;
use redis::aio::MultiplexedConnection;
use tokio::task::JoinSet;
use tollgate_algorithms::{Check, Cost, Id, Micros, Operation, Policy, Request};
use tollgate_redis::{RedisOptions, RedisStore};
use tollgate_state::{Clock, ManualClock, Store};
use tollgate_testkit::Server;

use crate::redis::row::{Decider, Row};
use crate::redis::scripts::Script;

/// Long enough for a server that is creating keys, and for a busy machine.
const TIMEOUT: Duration = Duration::from_secs(20);

pub(crate) trait Caller: Send + 'static {
    /// Makes a request for the key of this number and waits for the response.
    fn call(&mut self, number: usize) -> impl Future<Output = Result<()>> + Send;
}

/// Makes `requests` requests from number `next` on. All callers run at once, each makes one request
/// at a time. Returns the time it took.
pub(crate) async fn run<C: Caller>(
    callers: Vec<C>,
    next: &Arc<AtomicUsize>,
    requests: usize,
) -> Result<Micros> {
    let end = next.load(Ordering::Relaxed) + requests;
    let clock = Clock::system();
    let start = clock.now();
    let mut tasks = JoinSet::new();
    for mut caller in callers {
        let next = Arc::clone(next);
        tasks.spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= end {
                    return anyhow::Ok(());
                }
                caller.call(number).await?;
            }
        });
    }
    for result in tasks.join_all().await {
        result?;
    }
    Ok(clock.now().duration_since(start))
}

/// Makes requests to the store.
#[derive(Clone, Debug)]
pub(crate) struct StoreCaller {
    store: RedisStore,
    row: Arc<Row>,
}

impl StoreCaller {
    pub(crate) fn new(store: &RedisStore, row: &Arc<Row>) -> Self {
        StoreCaller { store: store.clone(), row: Arc::clone(row) }
    }

    async fn decide(&self, operation: Operation, key: &str) -> Result<()> {
        let Decider::Policies { policies, admits } = &self.row.decider else {
            bail!("{} has no policy", self.row.name)
        };
        let second = format!("address:{key}");
        let keys = [key.as_bytes(), second.as_bytes()];
        let check = |(policy, key)| Check { policy, key, cost: Cost::ONE };
        let checks: Vec<Check<'_>> = policies.iter().zip(keys).map(check).collect();
        let request = Request { operation, checks: &checks, request_id: None };
        for result in self.store.decide(&[request]).await {
            ensure!(result?.allowed() == *admits, "{}: {operation:?} of {key}", self.row.name);
        }
        Ok(())
    }
}

impl Caller for StoreCaller {
    async fn call(&mut self, number: usize) -> Result<()> {
        let key = self.row.key(number);
        if !self.row.has_leases() {
            return self.decide(Operation::Check { lease: None }, key).await;
        }
        let lease = id(u64::MAX, number);
        self.decide(Operation::Acquire { lease }, key).await?;
        self.decide(Operation::Release { lease }, key).await
    }
}

fn id(high: u64, low: usize) -> Id {
    Id::from_u128((u128::from(high) << 64) | u128::from(number(low)))
}

/// Calls a script.
#[derive(Clone)]
pub(crate) struct ScriptCaller {
    connection: MultiplexedConnection,
    sha: Arc<str>,
    script: Script,
    row: Arc<Row>,
}

impl ScriptCaller {
    pub(crate) fn new(
        connection: &MultiplexedConnection,
        server: &Server,
        row: &Arc<Row>,
    ) -> Result<Self> {
        let Decider::Script(script) = row.decider else { bail!("{} has no script", row.name) };
        let sha = server.command(&["SCRIPT", "LOAD", script.lua]).text().into();
        Ok(ScriptCaller { connection: connection.clone(), sha, script, row: Arc::clone(row) })
    }
}

impl Caller for ScriptCaller {
    async fn call(&mut self, number: usize) -> Result<()> {
        let mut command = redis::cmd("EVALSHA");
        command.arg(&*self.sha).arg(1).arg(format!("rate:{}", self.row.key(number)));
        command.arg(self.script.arguments);
        let (admits, _): (bool, u64) = command.query_async(&mut self.connection).await?;
        ensure!(admits, "{}: {}", self.row.name, self.row.key(number));
        Ok(())
    }
}

pub(crate) async fn connect(server: &Server) -> Result<MultiplexedConnection> {
    let config = redis::AsyncConnectionConfig::new().set_response_timeout(Some(TIMEOUT));
    let client = redis::Client::open(server.url())?;
    Ok(client.get_multiplexed_async_connection_with_config(&config).await?)
}

pub(crate) async fn open(url: &str, options: RedisOptions) -> Result<RedisStore> {
    let store = RedisStore::open(url, RedisOptions { call_timeout: TIMEOUT, ..options })?;
    store.ready().await?;
    Ok(store)
}

/// Creates the state that the keys of a row are measured in.
pub(crate) async fn fill(server: &Server, row: &Row) -> Result<()> {
    let fill = row.fill;
    match &row.decider {
        _ if fill.entries == 0 => {}
        Decider::Script(script) => {
            let mut connection = server.connect();
            for key in &row.keys {
                let (key, entries) = (format!("rate:{key}"), fill.entries.to_string());
                let reply = connection.command(&["EVAL", script.fill, "1", &key, &entries])?;
                ensure!(!reply.is_error(), "{}: {reply:?}", row.name);
            }
        }
        Decider::Policies { policies, .. } => {
            let now = Clock::system().now();
            let clock = ManualClock::default();
            let options = RedisOptions { clock: Some(clock.clone()), ..RedisOptions::default() };
            let store = open(&server.url(), options).await?;
            for entry in 0..fill.entries {
                let age = fill.interval_us * (fill.entries - 1 - entry);
                clock.set(now.saturating_sub(Micros::new(age)));
                charge_all(&store, row, policies, entry).await?;
            }
        }
    }
    Ok(())
}

/// Charges an entry to every key of a row.
async fn charge_all(store: &RedisStore, row: &Row, policies: &[Policy], entry: u64) -> Result<()> {
    let cost = Cost::from(row.fill.cost);
    let check = |key| policies.iter().map(move |policy| Check { policy, key, cost });
    let checks: Vec<_> = row.keys.iter().flat_map(|key| check(key.as_bytes())).collect();
    let lease = row.has_leases().then(|| id(entry, 0));
    let operation = Operation::Check { lease };
    let request = |checks| Request { operation, checks, request_id: None };
    let requests: Vec<_> = checks.chunks(1).map(request).collect();
    // Half of the requests that may wait.
    for requests in requests.chunks(5_000) {
        for result in store.decide(requests).await {
            ensure!(result?.allowed(), "{} is not filled", row.name);
        }
    }
    Ok(())
}
