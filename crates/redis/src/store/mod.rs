//! The store on Redis or Valkey.

mod reply;
mod warnings;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use futures_util::future::{join_all, select_ok};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::AbortHandle;
use tokio::time::Instant;
use tollgate_algorithms::{Cost, Inspection, Policy, Request};
use tollgate_state::{Answer, Failure, FailureKind, Key, OpenError, Store, StoreError};

use crate::connection::{CommandChannel, CommandError, Dialer};
use crate::context::{Status, StoreContext};
use crate::credentials::Credentials;
use crate::cross_slot::{CrossSlotRequest, Dispatcher, Phase};
use crate::encoding::PolicyEncodings;
use crate::handshake::ServerKind;
use crate::keyspace::{Keyspace, Partitions};
use crate::node::Node;
use crate::node_stats::{NodeList, NodeStats};
use crate::options::{DEFAULT_GROUPS, RedisOptions};
use crate::password_rotation::start_rotation;
use crate::request::{self, BatchKey, RequestCheck, StoreRequest};
use crate::stats::{Counters, RedisStats};
use crate::topology::{Discovery, Routes, Sentinels, Topology};
use crate::url::{self, Address, AddressMap, Login, Servers, Target};
use reply::PendingAnswer;
pub use reply::{LateReply, Reply, TimedRequest};
use warnings::ServerInfo;
pub use warnings::Warning;

/// A store on Redis or Valkey, which any number of processes can share. Clones share the connections.
///
/// A request takes one round trip, which concurrent requests share. A request whose outcome is unknown
/// is never sent again. If its future is dropped before the request was sent, it is not sent; if it is
/// dropped later, what the request was charged is taken back when the answer arrives, unless the
/// request has an id.
///
/// Requests with the same first key are decided in the order in which they were made. The exceptions
/// are calls that a server rejected and which were sent again, a lost connection, and overload: then the
/// newest requests are served first, because the oldest would be answered too late.
///
/// # Examples
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use tollgate_algorithms::{Check, Cost, Policy, Request, Operation};
/// use tollgate_redis::{RedisOptions, RedisStore};
/// use tollgate_state::Store;
///
/// let store = RedisStore::open("redis://127.0.0.1", RedisOptions::default())?;
/// let api: Policy = "10/s".parse()?;
/// let checks = [Check { policy: &api, key: b"user:42", cost: Cost::ONE }];
/// let request = Request { operation: Operation::Check { lease: None }, checks: &checks, request_id: None };
/// for answer in store.decide(&[request]).await {
///     println!("{}", answer?.allowed());
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct RedisStore(Arc<Inner>);

struct Inner {
    dispatcher: Dispatcher,
    /// The tasks that end with the store.
    tasks: Vec<AbortHandle>,
    /// The credentials for sentinels.
    sentinel_credentials: Arc<Credentials>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.tasks.iter().for_each(AbortHandle::abort);
    }
}

/// Sends a `PING`. Any reply shows that the server responds, except that it cannot serve requests.
async fn ping(address: &Address, commands: CommandChannel) -> Result<(), Failure> {
    let failure = match commands.command(&["PING"]).await {
        Ok(_) => return Ok(()),
        Err(CommandError::Lost(failure)) => {
            let message = format!("{address} does not answer PING: {}", failure.message);
            return Err(Failure::new(FailureKind::Unreachable, message));
        }
        Err(error) => error.failure(),
    };
    match failure.kind {
        FailureKind::NoPermission => Ok(()),
        _ => Err(failure),
    }
}

impl RedisStore {
    /// Checks a URL without opening the store.
    ///
    /// # Errors
    /// Returns the error that [`open`](Self::open) returns for the URL.
    pub fn check_url(url: &str) -> Result<(), OpenError> {
        url::parse(url).map(drop)
    }

    /// Opens the store at a URL. It connects in the background, so an unreachable server is no error;
    /// see [`ready`](Self::ready).
    ///
    /// - `redis://[user[:password]@]host[:port][/db]`, `redis+unix:///path?db=N`, `unix:///path`
    /// - `redis+cluster://host:port,host:port`: seed nodes of a cluster
    /// - `redis+sentinel://host:port,host:port/master[/db]`
    ///
    /// Use `rediss` in place of `redis` for TLS. The nodes of a cluster then need certificates for the
    /// names or addresses that the store connects to, unless `tls_server_name` is set. `valkey` and
    /// `valkeys` are aliases. Users and passwords are percent-encoded.
    ///
    /// # Errors
    /// Returns an error if the URL or an option is invalid, if it needs TLS and the feature `tls-rustls` is
    /// disabled, or if there is no tokio runtime.
    pub fn open(url: &str, options: RedisOptions) -> Result<RedisStore, OpenError> {
        let target = url::parse(url)?;
        options.check()?;
        let address_map = AddressMap::new(&options.address_map)?;
        let runtime = Handle::try_current().map_err(|_| OpenError::NoRuntime)?;
        let _entered = runtime.enter();
        Ok(RedisStore(Arc::new(Inner::open(target, options, address_map))))
    }

    /// Waits until the store is connected, or until the first attempt fails. The store keeps trying.
    ///
    /// # Errors
    /// Returns the reason if the attempt fails.
    pub async fn ready(&self) -> Result<(), StoreError> {
        let mut status = self.context().status.subscribe();
        let changed = status.wait_for(|status| *status != Status::Connecting).await;
        match changed.as_deref() {
            Ok(Status::Down(failure)) => Err(failure.clone().into()),
            Ok(_) => Ok(()),
            Err(_) => {
                Err(StoreError::unavailable(FailureKind::Unreachable, "the store was closed"))
            }
        }
    }

    /// Waits like [`ready`](Self::ready), then until one of the servers has answered a `PING`: a
    /// connection may be up although its server no longer responds. A proxy gets none.
    ///
    /// # Errors
    /// Returns the reason if no server answers.
    pub async fn ping(&self) -> Result<(), StoreError> {
        self.ready().await?;
        // A proxy may close a connection on which it gets a command that it does not know.
        if self.context().server_kind == ServerKind::Proxy {
            return Ok(());
        }
        let nodes = self.routes().nodes();
        let pings = nodes.iter().filter_map(|node| Some((node.address(), node.commands()?)));
        let pings: Vec<_> =
            pings.map(|(address, commands)| Box::pin(ping(address, commands))).collect();
        if pings.is_empty() {
            // The connection was lost a moment ago; the next attempt to connect shows why.
            return Ok(());
        }
        select_ok(pings).await.map(|_| ()).map_err(StoreError::from)
    }

    /// Returns the state of a key: the usage of each limit, the block, leases and reservations, and
    /// when they expire.
    ///
    /// # Errors
    /// Returns an error if the store failed.
    pub async fn inspect(&self, policy: &Policy, key: Key<'_>) -> Result<Inspection, StoreError> {
        let check =
            RequestCheck { policy: policy.clone(), key: key.as_bytes().into(), cost: Cost::ZERO };
        let partition = self.context().keyspace.partition_of(&check.key);
        let deadline = self.default_deadline();
        let batch_key = BatchKey::new(partition);
        let inspection = StoreRequest::inspect(check);
        let receiver = self.0.dispatcher.send(inspection, batch_key, deadline, Phase::Only);
        request::into_inspection(receiver.await)
    }

    /// Checks the configuration of the servers, and reads how long their scripts took. Servers that are
    /// unreachable or reject the command are skipped. A failover can bring a server with another
    /// configuration, so check again when [`nodes`](Self::nodes) changes. Returns none through a proxy.
    pub async fn warnings(&self) -> Vec<Warning> {
        // A proxy may close a connection on which it gets a command that it does not know.
        if self.context().server_kind == ServerKind::Proxy {
            return Vec::new();
        }
        let checks = self.routes().nodes().into_iter().map(|node| async move {
            let info = ServerInfo::read(&node.commands()?).await?;
            node.set_script_time(info.script_time());
            let server = node.address().to_string();
            let mut warnings = info.warnings(&server);
            if !node.calls_functions() {
                warnings.push(Warning::NoFunctions { server: server.into() });
            }
            Some(warnings)
        });
        join_all(checks).await.into_iter().flatten().flatten().collect()
    }

    /// Returns the counters since the store was opened.
    #[must_use]
    pub fn stats(&self) -> RedisStats {
        self.context().counters.lock().clone()
    }

    /// Returns why the password in the file of
    /// [`password_file`](RedisOptions::password_file) or of
    /// [`sentinel_password_file`](RedisOptions::sentinel_password_file) is not in use: the file cannot
    /// be read, or a server rejects the password. Open connections keep their login meanwhile.
    #[must_use]
    pub fn password_failure(&self) -> Option<Failure> {
        self.context().credentials.failure().or_else(|| self.0.sentinel_credentials.failure())
    }

    /// Returns the state and the counters of each server, by address. A server that left the cluster or
    /// is no longer the primary is not among them.
    #[must_use]
    pub fn nodes(&self) -> Vec<NodeStats> {
        self.context().nodes.stats()
    }

    pub(crate) fn context(&self) -> &Arc<StoreContext> {
        &self.0.dispatcher.context
    }

    pub(crate) fn routes(&self) -> &Routes {
        &self.0.dispatcher.routes
    }

    /// Decides each request as a whole, as [`decide`](Store::decide) does, each before its own
    /// deadline; returns one reply per request, in order. A late answer does not delay the others of
    /// the same deadline.
    pub async fn decide_by(&self, requests: &[TimedRequest<'_>]) -> Vec<Reply> {
        let Some(first) = requests.first() else { return Vec::new() };
        let pending: Vec<_> =
            requests.iter().map(|timed| (timed.deadline, self.begin(timed))).collect();
        let mut timer = std::pin::pin!(tokio::time::sleep_until(first.deadline));
        let mut replies = Vec::with_capacity(pending.len());
        for (deadline, answer) in pending {
            replies.push(answer.receive_by(deadline, timer.as_mut(), self.context()).await);
        }
        replies
    }

    /// The deadline of requests without one: a request waits for at most the timeout of a call, and so
    /// does its call.
    fn default_deadline(&self) -> Instant {
        Instant::now() + 2 * self.context().options.call_timeout
    }

    /// Sends a request.
    fn begin(&self, timed: &TimedRequest<'_>) -> PendingAnswer {
        let TimedRequest { request, deadline } = *timed;
        if let Err(error) = request.validate_for_store() {
            return PendingAnswer::Failed(error.into());
        }
        if request.operation.decides()
            && let Err(error) = self.routes().check_breakers(request.checks)
        {
            return PendingAnswer::Failed(error);
        }
        let keyspace = &self.context().keyspace;
        let mut partitions = request.checks.iter().map(|check| keyspace.partition_of(check.key));
        #[expect(clippy::expect_used, reason = "validated above")]
        let first = partitions.next().expect("a valid request has a check");
        let request = StoreRequest::from(&request);
        if partitions.all(|partition| partition == first) {
            let batch_key = BatchKey::new(first);
            let receiver = self.0.dispatcher.send(request, batch_key, deadline, Phase::Only);
            return PendingAnswer::Single(receiver);
        }
        // A separate task: if this future is dropped midway, no partition stays charged alone.
        let (sender, receiver) = oneshot::channel();
        let dispatcher = self.0.dispatcher.clone();
        tokio::spawn(async move {
            let cross_slot = CrossSlotRequest {
                dispatcher: &dispatcher,
                request: &request,
                deadline,
                by_key: false,
            };
            let answer = cross_slot.decide(|| !sender.is_closed()).await;
            if let Err(Ok(late)) = sender.send(answer) {
                dispatcher.reconcile(&request, &late);
            }
        });
        PendingAnswer::CrossSlot(receiver)
    }
}

impl Inner {
    fn open(target: Target, options: RedisOptions, address_map: AddressMap) -> Self {
        let Target { servers, is_tls, login, database } = target;
        let login = Login {
            username: options.username.clone().or(login.username),
            password: options.password.clone().or(login.password),
            password_file: options.password_file.clone(),
        };
        let credentials = Arc::new(Credentials::new(login, "password_file"));
        let (groups, server_kind) = match (&servers, options.groups) {
            (Servers::Cluster(_), groups) => {
                (Some(groups.unwrap_or(DEFAULT_GROUPS)), ServerKind::ClusterNode)
            }
            (Servers::One(_), Some(groups)) => (Some(groups), ServerKind::Proxy),
            (_, groups) => (groups, ServerKind::Single),
        };
        let partitions = groups.map(|groups| Partitions::new(&options.namespace, groups));
        let (sender, events) = mpsc::unbounded_channel();
        let sentinel_login = Login {
            username: options.sentinel_username.clone(),
            password: options.sentinel_password.clone(),
            password_file: options.sentinel_password_file.clone(),
        };
        let sentinel_credentials =
            Arc::new(Credentials::new(sentinel_login, "sentinel_password_file"));
        let sentinel_dialer = Dialer::new(&options, &sentinel_credentials, 0, is_tls);
        let (per_key, per_key_requests) = mpsc::unbounded_channel();
        let context = Arc::new(StoreContext {
            server_kind,
            keyspace: Keyspace::new(&options.namespace, partitions),
            encodings: PolicyEncodings::default(),
            dialer: Dialer::new(&options, &credentials, database, is_tls),
            credentials,
            address_map,
            counters: Counters::default(),
            nodes: NodeList::default(),
            active_breakers: AtomicUsize::new(0),
            status: watch::Sender::new(Status::Connecting),
            topology: (!matches!(servers, Servers::One(_))).then(|| sender.clone()),
            per_key,
            options,
        });
        let routes = Arc::new(Routes::new(Arc::clone(&context)));
        let nodes = Arc::clone(&context);
        let connections = move || nodes.nodes.connections();
        let rotation = start_rotation(&context.credentials, &context, connections);
        let mut tasks: Vec<AbortHandle> = rotation.into_iter().collect();
        let discovery = match servers {
            Servers::One(address) => {
                let node = Arc::new(Node::start(&address, &context));
                routes.set(vec![Some(node); usize::from(context.keyspace.partition_count())]);
                None
            }
            Servers::Cluster(seeds) => Some(Discovery::Cluster(seeds)),
            Servers::Sentinels { sentinels, master } => {
                let sentinels = Arc::new(Sentinels::new(sentinel_dialer, sentinels, master));
                let connected = Arc::clone(&sentinels);
                let connections = move || connected.connection().into_iter().collect();
                tasks.extend(start_rotation(&sentinel_credentials, &context, connections));
                Some(Discovery::Sentinels(sentinels))
            }
        };
        tasks.extend(discovery.map(|discovery| {
            let task = Topology::new(&context, &routes, discovery, (sender, events));
            tokio::spawn(task.run()).abort_handle()
        }));
        let dispatcher = Dispatcher { context, routes };
        tasks.push(
            tokio::spawn(dispatcher.clone().decide_per_key_requests(per_key_requests))
                .abort_handle(),
        );
        Inner { dispatcher, tasks, sentinel_credentials }
    }
}

impl Store for RedisStore {
    async fn decide(&self, requests: &[Request<'_>]) -> Vec<Result<Answer, StoreError>> {
        let deadline = self.default_deadline();
        let timed: Vec<_> =
            requests.iter().map(|request| TimedRequest { request: *request, deadline }).collect();
        let answers = self.decide_by(&timed).await.into_iter().map(|reply| match reply {
            Reply::Answer(answer) => answer,
            Reply::Late(_) => {
                let message = "no answer within twice the timeout of a call";
                Err(StoreError::unavailable(FailureKind::Deadline, message))
            }
        });
        answers.collect()
    }

    async fn inspect(&self, policy: &Policy, key: Key<'_>) -> Result<Inspection, StoreError> {
        RedisStore::inspect(self, policy, key).await
    }
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStore")
            .field("options", &self.context().options)
            .field("status", &*self.context().status.borrow())
            .finish_non_exhaustive()
    }
}
