//! Requests that share a call.

use std::time::Duration;

use redis::Value;
use tokio::time::Instant;
use tollgate_state::{ManualClock, StoreError};

use super::pool::Pool;
use crate::context::StoreContext;
use crate::decode;
use crate::encode::{self, Call, InjectedTime};
use crate::request::{BatchKey, PendingRequest, Responder, StoreRequest};

/// How often a request is redirected at most, because servers may redirect in a circle.
const MAX_REDIRECTIONS: u8 = 50;

/// Requests that share a call.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) key: BatchKey,
    requests: Vec<StoreRequest>,
    responders: Vec<Responder>,
    pub(super) call: Call,
    /// How often the call was sent together with the script.
    pub(super) script_loads: u8,
}

impl Batch {
    /// Encodes requests with one batch key; `None` if there are none.
    pub(super) fn new(pending: Vec<PendingRequest>, context: &StoreContext) -> Option<Self> {
        let key = pending.first()?.batch_key;
        let (requests, responders): (Vec<_>, Vec<_>) =
            pending.into_iter().map(|pending| (pending.request, pending.responder)).unzip();
        let options = &context.options;
        let injected =
            |clock: &ManualClock| InjectedTime { now: clock.now(), short_log: options.short_log };
        let now = options.clock.as_ref().map(injected);
        let horizon = options.request_id_horizon;
        let StoreContext { keyspace, encodings, .. } = context;
        let call = encode::encode(&requests, keyspace, encodings, now, horizon);
        Some(Batch { key, requests, responders, call, script_loads: 0 })
    }

    pub(super) fn len(&self) -> usize {
        self.responders.len()
    }

    /// Returns how long the callers wait at most; `None` if the call only takes back charges.
    pub(super) fn budget(&self) -> Option<Duration> {
        self.callers().map(Responder::budget).max()
    }

    /// Returns whether no caller waits any more; never for a call that only takes back charges.
    pub(super) fn is_late(&self, now: Instant) -> bool {
        self.callers().map(|caller| caller.deadline).max().is_some_and(|latest| latest < now)
    }

    fn callers(&self) -> impl Iterator<Item = &Responder> {
        self.responders.iter().filter(|responder| !responder.is_compensation())
    }

    /// Decodes the reply to the call, and responds to every caller.
    pub(super) fn respond(self, reply: Value, pool: &Pool) {
        let decoded = match decode::decode(&self.requests, &self.call, reply) {
            Ok(decoded) => decoded,
            Err(error) => return self.fail(&error, pool),
        };
        pool.record(|counters| counters.record_reply(decoded.corrupt, decoded.anomalies));
        let now = Instant::now();
        let late = self.responders.iter().filter(|responder| responder.is_late(now)).count();
        if late > 0 {
            pool.record(|counters| counters.record_late(late));
        }
        let callers = self.requests.iter().zip(self.responders);
        for ((request, responder), outcome) in callers.zip(decoded.outcomes) {
            if let Err(error) = &outcome {
                pool.record(|counters| counters.record_error(error, request.may_charge()));
            }
            if let Err(late) = responder.respond(outcome) {
                pool.reconcile(request, self.key.partition, &late);
            }
        }
    }

    pub(super) fn fail(self, error: &StoreError, pool: &Pool) {
        for (request, responder) in self.requests.iter().zip(self.responders) {
            pool.record(|counters| counters.record_error(error, request.may_charge()));
            // If the caller has gone, there is nothing to take back, or it is unknown what.
            let _ = responder.respond(Err(error.clone()));
        }
    }

    /// Takes the requests out of the batch, to be sent elsewhere; second those that were redirected
    /// too often.
    pub(super) fn into_pending(
        self,
        batch_key: BatchKey,
    ) -> (Vec<PendingRequest>, Vec<PendingRequest>) {
        let requests = self.requests.into_iter().zip(self.responders);
        let redirected = requests.map(|(request, mut responder)| {
            responder.redirections += 1;
            PendingRequest { request, batch_key, responder }
        });
        redirected.partition(|pending| pending.responder.redirections <= MAX_REDIRECTIONS)
    }
}
