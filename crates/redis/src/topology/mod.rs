//! Which server has which keys, where that can change: on a cluster, and behind sentinels.
//!
//! A task finds it out at first, from time to time, and whenever a connection is lost or a server
//! says that it is not, or no more, the right one. What was not executed meanwhile is sent to where
//! it belongs, once that is known.

mod cluster;
mod groups;
mod routes;
mod sentinels;
mod slots;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tollgate_core::Micros;
use tollgate_store::{Failure, FailureKind};

pub(crate) use cluster::{Cluster, ask_for_slots};
pub(crate) use routes::Routes;
pub(crate) use sentinels::Sentinels;
pub(crate) use slots::Found;

use crate::node::{Common, News, Node, Status};
use crate::url::Address;
use crate::waiting::{Line, Waiting};

/// Who finds it out.
#[derive(Debug)]
pub(crate) enum Finder {
    Cluster(Cluster),
    Sentinels(Box<Sentinels>),
}

/// Between two searches there is at least this much.
const PAUSE: Duration = Duration::from_millis(20);
/// What may be executed in a moment is sent again after this much.
const MOMENT: Duration = Duration::from_millis(10);

impl Finder {
    async fn find(&self, is_doubted: bool) -> Result<Found, Failure> {
        match self {
            Finder::Cluster(cluster) => cluster.find().await,
            Finder::Sentinels(sentinels) => sentinels.find(is_doubted).await,
        }
    }

    /// How often to search without a reason.
    fn interval(&self) -> Duration {
        match self {
            Finder::Cluster(_) => Duration::from_secs(30),
            Finder::Sentinels(_) => Duration::from_secs(1),
        }
    }
}

/// The task.
pub(crate) struct Topology {
    common: Arc<Common>,
    routes: Arc<Routes>,
    finder: Arc<Finder>,
    news: UnboundedReceiver<News>,
    /// To send news to itself.
    later: UnboundedSender<News>,
    found: Option<Found>,
    nodes: HashMap<Address, Arc<Node>>,
    search: Option<BoxFuture<'static, Result<Found, Failure>>>,
    /// Something has changed since the search began.
    is_doubted: bool,
    /// Requests that wait for the end of the search.
    held: Vec<Waiting>,
}

impl Topology {
    pub(crate) fn new(
        common: &Arc<Common>,
        routes: &Arc<Routes>,
        finder: Finder,
        (later, news): (UnboundedSender<News>, UnboundedReceiver<News>),
    ) -> Self {
        Topology {
            common: Arc::clone(common),
            routes: Arc::clone(routes),
            finder: Arc::new(finder),
            news,
            later,
            found: None,
            nodes: HashMap::new(),
            search: None,
            is_doubted: true,
            held: Vec::new(),
        }
    }

    /// Runs until it is aborted.
    pub(crate) async fn run(mut self) {
        let mut regular = tokio::time::interval(self.finder.interval());
        regular.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            if self.search.is_none() && self.is_doubted {
                self.search(true);
            }
            tokio::select! {
                Some(news) = self.news.recv() => self.hear(news),
                found = searched(&mut self.search) => self.searched(found),
                _ = regular.tick() => if self.search.is_none() { self.search(false) },
            }
        }
    }

    fn search(&mut self, is_doubted: bool) {
        let finder = Arc::clone(&self.finder);
        let pause = if self.found.is_some() { PAUSE } else { Duration::ZERO };
        self.is_doubted = false;
        self.search = Some(Box::pin(async move {
            tokio::time::sleep(pause).await;
            finder.find(is_doubted).await
        }));
    }

    fn searched(&mut self, found: Result<Found, Failure>) {
        self.search = None;
        match found {
            Ok(found) => {
                self.nodes.retain(|address, _| found.nodes.contains(address));
                self.found = Some(found);
                self.publish();
                self.common.status.send_replace(Status::Up);
            }
            Err(failure) => {
                // Who keeps other groups than the rest must not go on.
                let always = failure.kind == FailureKind::PartitionMismatch;
                self.routes.set_down(&failure, always);
                if always {
                    self.found = None;
                    self.nodes.clear();
                }
                if self.found.is_none() {
                    self.common.status.send_replace(Status::Down(failure));
                    self.search_again_soon();
                }
            }
        }
        for waiting in std::mem::take(&mut self.held) {
            self.routes.submit(waiting);
        }
    }

    /// Tells where each group's node is.
    fn publish(&mut self) {
        let Some(found) = self.found.take() else { return };
        let by_group = found.by_group(&self.common.names, usize::from(self.groups()));
        let by_group: Vec<_> =
            by_group.into_iter().map(|group| group.map(|address| self.node(&address))).collect();
        self.routes.set(by_group);
        self.found = Some(found);
    }

    fn groups(&self) -> u16 {
        match &*self.finder {
            Finder::Cluster(_) => self.common.options.groups,
            Finder::Sentinels(_) => 1,
        }
    }

    fn node(&mut self, address: &Address) -> Arc<Node> {
        let start = || Arc::new(Node::start(address, &self.common));
        Arc::clone(self.nodes.entry(address.clone()).or_insert_with(start))
    }

    fn hear(&mut self, news: News) {
        match news {
            News::Moved { slot, to, requests } => {
                self.is_doubted = true;
                if let Some(found) = &mut self.found {
                    found.learn(slot, &to);
                    self.publish();
                }
                let node = self.node(&to);
                requests.into_iter().for_each(|request| node.submit(request));
            }
            News::Ask { to, requests } => {
                let node = self.node(&to);
                requests.into_iter().for_each(|request| node.submit(request));
            }
            News::Stale(requests) => {
                self.is_doubted = true;
                self.hold(requests);
            }
            News::Later(requests) => {
                self.is_doubted = true;
                self.after(MOMENT, News::Route(requests));
            }
            News::Route(requests) => self.route(requests),
            News::Lost => self.is_doubted = true,
        }
    }

    fn route(&mut self, requests: Vec<Waiting>) {
        let has_begun = self.found.is_some();
        for mut waiting in requests {
            waiting.line = Line { asks: false, ..waiting.line };
            if has_begun || (self.search.is_none() && !self.is_doubted) {
                self.routes.submit(waiting);
            } else {
                self.hold(vec![waiting]);
            }
        }
    }

    /// Keeps requests until the search has ended, as many as may wait for a node, and for as long as
    /// a call may take.
    fn hold(&mut self, requests: Vec<Waiting>) {
        let longest = self.common.options.call_timeout.as_micros();
        let longest = Micros::new(u64::try_from(longest).unwrap_or(u64::MAX));
        let now = self.common.clock.now();
        for waiting in requests {
            if self.held.len() >= self.common.options.queue {
                let message = "they wait until it is known where the keys are";
                self.routes.fail(waiting, &Failure::new(FailureKind::Overloaded, message));
            } else if now.duration_since(waiting.caller.since) > longest {
                let message = "where the keys are was not found out in time";
                self.routes.fail(waiting, &Failure::new(FailureKind::Unreachable, message));
            } else {
                self.held.push(waiting);
            }
        }
    }

    fn search_again_soon(&self) {
        self.after(PAUSE * 10, News::Lost);
    }

    fn after(&self, wait: Duration, news: News) {
        let later = self.later.clone();
        tokio::spawn(async move {
            tokio::time::sleep(wait).await;
            // If nobody listens the store is being dropped.
            let _ = later.send(news);
        });
    }
}

/// The end of the search that is under way, if there is one.
async fn searched(
    search: &mut Option<BoxFuture<'static, Result<Found, Failure>>>,
) -> Result<Found, Failure> {
    match search {
        Some(search) => search.await,
        None => std::future::pending().await,
    }
}

/// The first good answer of those who are asked together; else the last bad one.
async fn first_of<T>(
    asked: impl IntoIterator<Item = impl Future<Output = Result<T, Failure>>>,
) -> Result<T, Failure> {
    let mut asked: FuturesUnordered<_> = asked.into_iter().collect();
    let mut last = Failure::new(FailureKind::Unreachable, "there is nobody to ask");
    while let Some(answer) = asked.next().await {
        match answer {
            Ok(answer) => return Ok(answer),
            // That somebody cannot be reached says less than what another one says.
            Err(error) if error.kind == FailureKind::Unreachable && last.kind != error.kind => {}
            Err(error) => last = error,
        }
    }
    Err(last)
}
