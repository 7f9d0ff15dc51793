//! The store: what is asked goes to where the keys are.

use std::fmt;
use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::AbortHandle;
use tollgate_core::{Cost, Inspection, Operation, Policy, Request};
use tollgate_store::{Answer, Clock, FailureKind, Key, Store, StoreError};

use crate::answer::Told;
use crate::asked::{Asked, AskedCheck};
use crate::encoding::PolicyEncodings;
use crate::link::Dialer;
use crate::names::{Groups, Names};
use crate::node::{Common, Node, Status};
use crate::open_error::OpenError;
use crate::options::RedisOptions;
use crate::several::{self, Sender};
use crate::stats::{Counters, RedisStats};
use crate::topology::{Cluster, Finder, Routes, Sentinels, Topology};
use crate::url::{self, Login, Servers, Target};
use crate::waiting::Outcome;
use crate::warnings::{self, Warning};

/// State in Redis or Valkey, shared by any number of processes. Clones share their connections.
///
/// A request is one round trip, which it shares with all that wait at the same time. One that is
/// dropped before it was sent is not sent; after that it is charged, once. Nothing is sent twice
/// whose outcome is unknown.
///
/// Requests on one key that are asked one after the other, without waiting for the answers, are
/// decided in that order; with several checks, the first one's key counts. The order is lost only
/// where a server did not take a call, and it was sent again.
///
/// # Example
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
    sender: Sender,
    /// The task that finds out where keys are.
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
    /// Opens the store at a URL. It connects in the background: a server that is away is no error
    /// here, see [`ready`](Self::ready).
    ///
    /// - `redis://[user[:password]@]host[:port][/db]`, `redis+unix:///path?db=N`, `unix:///path`
    /// - `redis+cluster://host:port,host:port`: some nodes of a cluster, the others are found
    /// - `redis+sentinel://host:port,host:port/master[/db]`
    ///
    /// With `rediss` in place of `redis` there is TLS; the nodes of a cluster then need certificates
    /// of the names or addresses that they announce. `valkey` and `valkeys` mean the same.
    /// In users and passwords `%` and two hexadecimal digits stand for a byte.
    ///
    /// # Errors
    /// The URL or an option is not what it should be, or there is no tokio runtime.
    pub fn open(url: &str, options: RedisOptions) -> Result<RedisStore, OpenError> {
        let target = url::parse(url)?;
        options.check()?;
        let runtime = Handle::try_current().map_err(|_| OpenError::NoRuntime)?;
        let _entered = runtime.enter();
        Ok(RedisStore(Arc::new(Inner::open(target, options))))
    }

    /// Waits until the store is connected, or an attempt to has failed. It goes on trying.
    ///
    /// # Errors
    /// The attempt has failed, for this reason.
    pub async fn ready(&self) -> Result<(), StoreError> {
        let mut status = self.common().status.subscribe();
        let known = status.wait_for(|status| *status != Status::Connecting).await;
        match known.as_deref() {
            Ok(Status::Down(failure)) => Err(failure.clone().into()),
            Ok(_) => Ok(()),
            Err(_) => {
                Err(StoreError::unavailable(FailureKind::Unreachable, "the store was closed"))
            }
        }
    }

    /// Looks at a key: what each limit holds of it, and how long that lasts.
    ///
    /// # Errors
    /// The store gave no answer.
    pub async fn inspect(&self, policy: &Policy, key: Key<'_>) -> Result<Inspection, StoreError> {
        let check =
            AskedCheck { policy: policy.clone(), key: key.as_bytes().into(), cost: Cost::ZERO };
        let group = self.common().names.group_of(&check.key);
        let asked = Asked {
            verb: Operation::Peek,
            checks: vec![check],
            request_id: None,
            inspects: true,
            part_of: None,
        };
        match several::received(self.0.sender.send(asked, group).await)? {
            Told::Inspection(inspection) => Ok(inspection),
            Told::Decisions(_) => Err(crate::error::protocol("decisions for an inspection")),
        }
    }

    /// What about the servers may surprise later. One that is away, or does not tell, warns of
    /// nothing.
    pub async fn warnings(&self) -> Vec<Warning> {
        let mut found = Vec::new();
        for node in self.0.sender.routes.nodes() {
            if let Ok(link) = self.common().dialer.dial(node.address(), || ()).await {
                found.extend(warnings::of(&link, &node.address().to_string()).await);
            }
        }
        found
    }

    /// What has happened since the store was opened.
    #[must_use]
    pub fn stats(&self) -> RedisStats {
        self.common().counters.read()
    }

    pub(crate) fn common(&self) -> &Arc<Common> {
        &self.0.sender.common
    }

    pub(crate) fn routes(&self) -> &Routes {
        &self.0.sender.routes
    }

    /// Sends a request; the answer comes later.
    fn begin(&self, request: &Request<'_>) -> Pending {
        if let Err(error) = request.validate() {
            return Pending::Refused(error.into());
        }
        let names = &self.common().names;
        let asked = Asked::of(request);
        let mut groups = request.checks.iter().map(|check| names.group_of(check.key));
        let group = groups.next().unwrap_or(0);
        if groups.all(|g| g == group) {
            return Pending::One(self.0.sender.send(asked, group));
        }
        // In a task of its own: dropped halfway it would leave one group charged and not another.
        let (answer, answered) = oneshot::channel();
        let sender = self.0.sender.clone();
        tokio::spawn(async move {
            let decided = sender.decide(&asked, || !answer.is_closed()).await;
            // Who has gone does not want to know.
            let _ = answer.send(decided);
        });
        Pending::Several(answered)
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
        let groups = matches!(servers, Servers::Cluster(_))
            .then(|| Groups::new(&options.namespace, options.groups));
        let (news, heard) = mpsc::unbounded_channel();
        let sentinels = Login {
            username: options.sentinel_username.clone(),
            password: options.sentinel_password.clone(),
            password_file: None,
        };
        let sentinels = Dialer::new(&options, &sentinels, 0, is_tls);
        let common = Arc::new(Common {
            names: Names::new(&options.namespace, groups),
            encodings: PolicyEncodings::default(),
            dialer: Dialer::new(&options, &login, database, is_tls),
            clock: Clock::system(),
            counters: Counters::default(),
            status: watch::Sender::new(Status::Connecting),
            news: (!matches!(servers, Servers::One(_))).then(|| news.clone()),
            options,
        });
        let routes = Arc::new(Routes::new(Arc::clone(&common)));
        let finder = match servers {
            Servers::One(address) => {
                routes.set([Some(Arc::new(Node::start(&address, &common)))]);
                None
            }
            Servers::Cluster(seeds) => Some(Finder::Cluster(Cluster::new(&common, seeds))),
            Servers::Sentinels { sentinels: them, master } => {
                let found = Sentinels::new(&common, sentinels, them, master);
                Some(Finder::Sentinels(Box::new(found)))
            }
        };
        let topology = finder.map(|finder| {
            let task = Topology::new(&common, &routes, finder, (news, heard));
            tokio::spawn(task.run()).abort_handle()
        });
        Inner { sender: Sender { common, routes }, topology }
    }
}

/// An answer that is to come.
enum Pending {
    Refused(StoreError),
    One(oneshot::Receiver<Outcome>),
    Several(oneshot::Receiver<Result<Answer, StoreError>>),
}

impl Pending {
    async fn answer(self) -> Result<Answer, StoreError> {
        match self {
            Pending::Refused(error) => Err(error),
            Pending::One(answered) => match several::received(answered.await)? {
                Told::Decisions(decisions) => Ok(decisions),
                Told::Inspection(_) => Err(crate::error::protocol("an inspection for decisions")),
            },
            Pending::Several(answered) => answered.await.unwrap_or_else(|_| {
                Err(StoreError::unavailable(
                    FailureKind::ConnectionLost,
                    "the store was closed meanwhile",
                ))
            }),
        }
    }
}

impl Store for RedisStore {
    async fn decide(&self, requests: &[Request<'_>]) -> Vec<Result<Answer, StoreError>> {
        let pending: Vec<Pending> = requests.iter().map(|request| self.begin(request)).collect();
        let mut answers = Vec::with_capacity(pending.len());
        for answer in pending {
            answers.push(answer.answer().await);
        }
        answers
    }
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStore")
            .field("options", &self.common().options)
            .field("status", &*self.common().status.borrow())
            .finish_non_exhaustive()
    }
}
