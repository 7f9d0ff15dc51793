//! Where requests go: a node for each group of keys.

use std::sync::{Arc, PoisonError, RwLock};

use tokio::sync::mpsc::UnboundedSender;
use tollgate_store::{Failure, FailureKind, StoreError};

use crate::node::{Common, News, Node};
use crate::waiting::Waiting;

/// Where requests go.
#[derive(Debug)]
pub(crate) struct Routes {
    common: Arc<Common>,
    inner: RwLock<Inner>,
}

#[derive(Debug)]
enum Inner {
    /// It is still being found out.
    Unknown,
    /// It could not be found out.
    Down(Failure),
    Known(Box<[Option<Arc<Node>>]>),
}

impl Routes {
    /// Nothing is known yet.
    pub(crate) fn new(common: Arc<Common>) -> Self {
        Routes { common, inner: RwLock::new(Inner::Unknown) }
    }

    /// All goes to one node, or to one for each group.
    pub(crate) fn set(&self, by_group: impl IntoIterator<Item = Option<Arc<Node>>>) {
        let by_group = Inner::Known(by_group.into_iter().collect());
        // What is replaced is dropped after the lock: nodes give back what waits for them.
        let replaced = {
            let mut inner = self.inner.write().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *inner, by_group)
        };
        drop(replaced);
    }

    /// Where nothing is known, or in any case if `always`, this is why.
    pub(crate) fn set_down(&self, failure: &Failure, always: bool) {
        let mut inner = self.inner.write().unwrap_or_else(PoisonError::into_inner);
        if always || !matches!(*inner, Inner::Known(_)) {
            let replaced = std::mem::replace(&mut *inner, Inner::Down(failure.clone()));
            drop(inner);
            drop(replaced);
        }
    }

    /// Sends a request to its node, or answers it at once.
    pub(crate) fn submit(&self, waiting: Waiting) {
        let inner = self.inner.read().unwrap_or_else(PoisonError::into_inner);
        match &*inner {
            Inner::Known(by_group) => {
                let node = by_group.get(usize::from(waiting.line.group)).cloned().flatten();
                drop(inner);
                match node {
                    Some(node) => node.submit(waiting),
                    None => {
                        self.tell(News::Lost);
                        let message = "no node is known to serve the slot of the key";
                        self.fail(waiting, &Failure::new(FailureKind::ClusterDown, message));
                    }
                }
            }
            Inner::Down(failure) => {
                let failure = failure.clone();
                drop(inner);
                self.fail(waiting, &failure);
            }
            Inner::Unknown => {
                drop(inner);
                self.tell(News::Route(vec![waiting]));
            }
        }
    }

    /// All nodes, each once.
    pub(crate) fn nodes(&self) -> Vec<Arc<Node>> {
        let inner = self.inner.read().unwrap_or_else(PoisonError::into_inner);
        let mut nodes: Vec<Arc<Node>> = Vec::new();
        if let Inner::Known(by_group) = &*inner {
            for node in by_group.iter().flatten() {
                if !nodes.iter().any(|n| Arc::ptr_eq(n, node)) {
                    nodes.push(Arc::clone(node));
                }
            }
        }
        nodes
    }

    pub(crate) fn fail(&self, waiting: Waiting, failure: &Failure) {
        let error = StoreError::from(failure.clone());
        self.common.counters.failed(&error);
        waiting.caller.answer(Err(error));
    }

    fn tell(&self, news: News) {
        let told: Option<&UnboundedSender<News>> = self.common.news.as_ref();
        // If nobody listens the store is being dropped, and with it who waits.
        let _ = told.map(|x| x.send(news));
    }
}
