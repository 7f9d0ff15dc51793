//! The store on Redis or Valkey.

use std::fmt;
use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::AbortHandle;
use tokio::time::Instant;
use tollgate_core::{Cost, Inspection, Policy, Request};
use tollgate_store::{Answer, FailureKind, Key, Store, StoreError};

use crate::connection::Dialer;
use crate::context::{Status, StoreContext};
use crate::cross_slot::{CrossSlotRequest, Dispatcher, Phase};
use crate::encoding::PolicyEncodings;
use crate::error::OpenError;
use crate::handshake::ServerKind;
use crate::keyspace::{Keyspace, Partitions};
use crate::node::Node;
use crate::options::RedisOptions;
use crate::reply::{PendingAnswer, Reply, TimedRequest};
use crate::request::{self, RequestCheck, StoreRequest};
use crate::stats::{Counters, RedisStats};
use crate::topology::{Discovery, Routes, Sentinels, Topology};
use crate::url::{self, Login, Servers, Target};
use crate::warnings::{self, Warning};

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
/// use tollgate_core::{Check, Cost, Policy, Request, Operation};
/// use tollgate_redis::{RedisOptions, RedisStore};
/// use tollgate_store::Store;
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
    /// The topology task, unless there is a single server.
    topology: Option<AbortHandle>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        if let Some(task) = &self.topology {
            task.abort();
        }
    }
}

impl RedisStore {
    /// Opens the store at a URL. It connects in the background, so an unreachable server is no error;
    /// see [`ready`](Self::ready).
    ///
    /// - `redis://[user[:password]@]host[:port][/db]`, `redis+unix:///path?db=N`, `unix:///path`
    /// - `redis+cluster://host:port,host:port`: seed nodes of a cluster
    /// - `redis+sentinel://host:port,host:port/master[/db]`
    ///
    /// Use `rediss` in place of `redis` for TLS. The nodes of a cluster then need certificates for the
    /// names or addresses that they announce. `valkey` and `valkeys` are aliases. Users and passwords
    /// are percent-encoded.
    ///
    /// # Errors
    /// Returns an error if the URL or an option is invalid, or if there is no tokio runtime.
    pub fn open(url: &str, options: RedisOptions) -> Result<RedisStore, OpenError> {
        let target = url::parse(url)?;
        options.check()?;
        let runtime = Handle::try_current().map_err(|_| OpenError::NoRuntime)?;
        let _entered = runtime.enter();
        Ok(RedisStore(Arc::new(Inner::open(target, options))))
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
        let receiver =
            self.0.dispatcher.send(StoreRequest::inspect(check), partition, deadline, Phase::Only);
        request::into_inspection(receiver.await)
    }

    /// Checks the configuration of the servers. Servers that are unreachable or reject the command are
    /// skipped.
    pub async fn warnings(&self) -> Vec<Warning> {
        let mut found = Vec::new();
        for node in self.routes().nodes() {
            if let Ok(connection) = self.context().dialer.dial(node.address(), || ()).await {
                found.extend(warnings::check(&connection, &node.address().to_string()).await);
            }
        }
        found
    }

    /// Returns the counters since the store was opened.
    #[must_use]
    pub fn stats(&self) -> RedisStats {
        self.context().counters.lock().clone()
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
        if let Err(error) = request.validate() {
            return PendingAnswer::Invalid(error.into());
        }
        let keyspace = &self.context().keyspace;
        let mut partitions = request.checks.iter().map(|check| keyspace.partition_of(check.key));
        #[expect(clippy::expect_used, reason = "validated above")]
        let first = partitions.next().expect("a valid request has a check");
        let request = StoreRequest::from(&request);
        if partitions.all(|partition| partition == first) {
            return PendingAnswer::Single(self.0.dispatcher.send(
                request,
                first,
                deadline,
                Phase::Only,
            ));
        }
        // A separate task: if this future is dropped midway, no partition stays charged alone.
        let (sender, receiver) = oneshot::channel();
        let dispatcher = self.0.dispatcher.clone();
        tokio::spawn(async move {
            let cross_slot =
                CrossSlotRequest { dispatcher: &dispatcher, request: &request, deadline };
            let answer = cross_slot.decide(|| !sender.is_closed()).await;
            if let Err(Ok(late)) = sender.send(answer) {
                dispatcher.reconcile(&request, &late);
            }
        });
        PendingAnswer::CrossSlot(receiver)
    }
}

impl Inner {
    fn open(target: Target, options: RedisOptions) -> Self {
        let Target { servers, is_tls, login, database } = target;
        let login = Login {
            username: options.username.clone().or(login.username),
            password: options.password.clone().or(login.password),
            password_file: options.password_file.clone(),
        };
        let partitions = matches!(servers, Servers::Cluster(_))
            .then(|| Partitions::new(&options.namespace, options.groups));
        let server_kind =
            if partitions.is_some() { ServerKind::ClusterNode } else { ServerKind::Single };
        let (sender, events) = mpsc::unbounded_channel();
        let sentinel_login = Login {
            username: options.sentinel_username.clone(),
            password: options.sentinel_password.clone(),
            password_file: options.sentinel_password_file.clone(),
        };
        let sentinel_dialer = Dialer::new(&options, &sentinel_login, 0, is_tls);
        let context = Arc::new(StoreContext {
            server_kind,
            keyspace: Keyspace::new(&options.namespace, partitions),
            encodings: PolicyEncodings::default(),
            dialer: Dialer::new(&options, &login, database, is_tls),
            counters: Counters::default(),
            status: watch::Sender::new(Status::Connecting),
            topology: (!matches!(servers, Servers::One(_))).then(|| sender.clone()),
            options,
        });
        let routes = Arc::new(Routes::new(Arc::clone(&context)));
        let discovery = match servers {
            Servers::One(address) => {
                routes.set([Some(Arc::new(Node::start(&address, &context)))]);
                None
            }
            Servers::Cluster(seeds) => Some(Discovery::Cluster(seeds)),
            Servers::Sentinels { sentinels, master } => {
                let sentinels = Sentinels::new(sentinel_dialer, sentinels, master);
                Some(Discovery::Sentinels(Arc::new(sentinels)))
            }
        };
        let topology = discovery.map(|discovery| {
            let task = Topology::new(&context, &routes, discovery, (sender, events));
            tokio::spawn(task.run()).abort_handle()
        });
        Inner { dispatcher: Dispatcher { context, routes }, topology }
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
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStore")
            .field("options", &self.context().options)
            .field("status", &*self.context().status.borrow())
            .finish_non_exhaustive()
    }
}
