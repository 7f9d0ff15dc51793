//! Idempotency: a request whose id was answered within the horizon gets the same answer again.

use std::collections::VecDeque;
use std::sync::Arc;

use hashbrown::HashMap;
use sha2::{Digest as _, Sha256};
use tollgate_algorithms::{Check, Decision, Operation, Policy, Request, RequestError, Timestamp};

use super::budget::{Budget, Usage};
use crate::store::Answer;
use crate::sync::HashState;

/// A SHA-256: of a request id, or of the arguments of a request. Records have the same size whatever
/// a client sends.
pub(crate) type Hash = [u8; 32];

/// Returns the hash of a request id.
pub(crate) fn hash_of(id: &[u8]) -> Hash {
    Sha256::digest(id).into()
}

/// Returns the hash of the part of a request that a repeat must share: operation, policies, keys
/// and costs. A repeat without an id of its own gets a new random one, so the ids of leases and
/// reservations that a request creates are not included.
pub(crate) fn fingerprint(request: &Request<'_>) -> Hash {
    let checks = request.checks.iter().map(|check| (check, check.cost.get()));
    fingerprint_of(&request.operation, checks)
}

/// Returns the fingerprint of a request with other costs.
fn fingerprint_of<'a>(
    operation: &Operation,
    checks: impl Iterator<Item = (&'a Check<'a>, u64)>,
) -> Hash {
    let mut hash = Sha256::new();
    hash.update(operation.as_str());
    let number = match *operation {
        Operation::Reserve { max_wait, .. } => Some(u128::from(max_wait.get())),
        Operation::Refund { time } => time.map(|time| u128::from(time.as_micros())),
        Operation::Backfill { limit, time } => {
            Some(u128::from(time.as_micros()) << 8 | u128::from(limit))
        }
        Operation::Block { span } => span.map(|span| u128::from(span.get())),
        Operation::Cancel { id }
        | Operation::Renew { lease: id }
        | Operation::Release { lease: id } => Some(id.as_u128()),
        _ => None,
    };
    // The name ends at this byte.
    hash.update([u8::from(number.is_some())]);
    hash.update(number.unwrap_or(0).to_le_bytes());
    for (check, cost) in checks {
        for part in [check.policy.name().as_bytes(), check.key] {
            hash.update(part.len().to_le_bytes());
            hash.update(part);
        }
        hash.update(cost.to_le_bytes());
    }
    hash.finalize().into()
}

/// The answer to a request with an id.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) fingerprint: Hash,
    pub(crate) answer: Answer,
    pub(crate) expires_at: Timestamp,
    /// The checks of a request that can be settled; empty for the other operations.
    pub(crate) charged: Box<[ChargedCheck]>,
    pub(crate) settlement: Option<Box<Settlement>>,
}

/// What a check charged.
#[derive(Debug)]
pub(crate) struct ChargedCheck {
    /// The policy with its limits at that time.
    pub(crate) policy: Policy,
    pub(crate) cost: u64,
}

/// The actual costs of a request, and the answer to its settlement.
#[derive(Debug)]
pub(crate) struct Settlement {
    pub(crate) costs: Box<[u64]>,
    pub(crate) answer: Answer,
}

impl Record {
    pub(crate) fn new(
        request: &Request<'_>,
        fingerprint: Hash,
        answer: &Answer,
        expires_at: Timestamp,
    ) -> Record {
        let charge = |check: &Check<'_>| ChargedCheck {
            policy: check.policy.clone(),
            cost: check.cost.get(),
        };
        let charged = match request.operation {
            Operation::Check { .. } => request.checks.iter().map(charge).collect(),
            _ => Box::default(),
        };
        Record { fingerprint, answer: answer.clone(), expires_at, charged, settlement: None }
    }

    /// Returns the answer to an earlier settlement with the same costs.
    ///
    /// # Errors
    /// The record is not that of these checks, or it was settled with other costs.
    pub(crate) fn settled(&self, checks: &[Check<'_>]) -> Result<Option<Answer>, RequestError> {
        if self.charged.is_empty() || self.charged.len() != checks.len() {
            return Err(RequestError::UnknownCharge);
        }
        let charged = self.charged.iter().zip(checks);
        let is_same = self.fingerprint
            == fingerprint_of(
                &Operation::Check { lease: None },
                charged.map(|(charged, check)| (check, charged.cost)),
            );
        match &self.settlement {
            _ if !is_same => Err(RequestError::UnknownCharge),
            None => Ok(None),
            Some(settlement) if settlement.has_costs_of(checks) => {
                Ok(Some(repeated(&settlement.answer)))
            }
            Some(_) => Err(RequestError::ChargeSettled),
        }
    }

    fn heap_bytes(&self) -> usize {
        let settlement = self.settlement.as_ref().map_or(0, |settlement| {
            size_of_val(&**settlement)
                + size_of_val(&*settlement.costs)
                + heap_bytes_of(&settlement.answer)
        });
        heap_bytes_of(&self.answer) + size_of_val(&*self.charged) + settlement
    }
}

impl Settlement {
    fn has_costs_of(&self, checks: &[Check<'_>]) -> bool {
        self.costs.iter().copied().eq(checks.iter().map(|check| check.cost.get()))
    }
}

fn heap_bytes_of(answer: &Answer) -> usize {
    let decisions = &answer.decisions;
    let details: usize = decisions.iter().map(Decision::heap_bytes).sum();
    decisions.capacity() * size_of::<Decision>() + details
}

/// Returns an answer, marked as a repeat.
fn repeated(answer: &Answer) -> Answer {
    let mut answer = answer.clone();
    answer.decisions.iter_mut().for_each(|decision| decision.replayed = true);
    answer
}

/// The recent answers of one partition of the request ids.
#[derive(Debug)]
pub(crate) struct RequestIds {
    records: HashMap<Hash, Record, HashState>,
    /// The ids in the order of expiry.
    order: VecDeque<(Timestamp, Hash)>,
    max: usize,
    max_bytes: usize,
    budget: Arc<Budget>,
    /// The bytes of the answers.
    heap: usize,
    /// The usage that the budget contains.
    recorded: Usage,
}

/// The result of looking up a request by its id.
pub(crate) enum Lookup {
    New,
    Repeat(Answer),
    /// The id was used with other arguments.
    Reused,
}

impl RequestIds {
    pub(crate) fn new(max: usize, max_bytes: usize, budget: Arc<Budget>) -> Self {
        RequestIds {
            records: HashMap::default(),
            order: VecDeque::new(),
            max: max.max(1),
            max_bytes,
            budget,
            heap: 0,
            recorded: Usage::default(),
        }
    }

    pub(crate) fn look_up(&mut self, id: &Hash, fingerprint: &Hash, now: Timestamp) -> Lookup {
        self.remove_expired(now);
        let Some(record) = self.records.get(id).filter(|record| now < record.expires_at) else {
            return Lookup::New;
        };
        if record.fingerprint != *fingerprint {
            return Lookup::Reused;
        }
        Lookup::Repeat(repeated(&record.answer))
    }

    /// Returns the record of an id.
    pub(crate) fn get(&mut self, id: &Hash, now: Timestamp) -> Option<&Record> {
        self.remove_expired(now);
        self.records.get(id).filter(|record| now < record.expires_at)
    }

    /// Records a settlement; removes older records if it has no room. Without room, the charge is
    /// forgotten, so that it cannot be settled twice.
    pub(crate) fn settle(&mut self, id: &Hash, settlement: Settlement) {
        let Some(mut record) = self.records.remove(id) else { return };
        self.heap -= record.heap_bytes();
        record.settlement = Some(Box::new(settlement));
        let heap = record.heap_bytes();
        let own = (record.expires_at, *id);
        while self.bytes() + heap > self.max_bytes
            && self.order.front().is_some_and(|oldest| *oldest != own)
        {
            self.remove_oldest();
        }
        if self.bytes() + heap <= self.max_bytes {
            self.heap += heap;
            self.records.insert(*id, record);
        }
        self.record_usage();
    }

    /// Records an answer; removes the oldest records beyond the bounds.
    pub(crate) fn record(&mut self, id: Hash, record: Record) {
        let heap = record.heap_bytes();
        while !self.order.is_empty()
            && (self.order.len() >= self.max
                || self.bytes() + self.growth() + heap > self.max_bytes)
        {
            self.remove_oldest();
        }
        if self.bytes() + self.growth() + heap > self.max_bytes {
            return;
        }
        self.order.push_back((record.expires_at, id));
        self.heap += heap;
        if let Some(replaced) = self.records.insert(id, record) {
            self.heap -= replaced.heap_bytes();
        }
        self.record_usage();
    }

    /// Frees the memory of expired records.
    pub(crate) fn sweep(&mut self, now: Timestamp) {
        self.remove_expired(now);
        if self.order.len() < self.order.capacity() / 4 {
            self.order.shrink_to(2 * self.order.len());
            self.records.shrink_to(2 * self.order.len());
        }
        self.record_usage();
    }

    fn bytes(&self) -> usize {
        let order = self.order.capacity() * size_of::<(Timestamp, Hash)>();
        self.records.allocation_size() + order + self.heap
    }

    /// Returns the bytes that one more record adds to the tables, which double.
    fn growth(&self) -> usize {
        const MIN: usize = 1_024;
        let is_full = self.records.len() == self.records.capacity();
        let records = if is_full { self.records.allocation_size().max(MIN) } else { 0 };
        let is_full = self.order.len() == self.order.capacity();
        let order = self.order.capacity() * size_of::<(Timestamp, Hash)>();
        records + if is_full { order.max(MIN) } else { 0 }
    }

    fn record_usage(&mut self) {
        let usage = Usage { request_ids: self.bytes(), ..Usage::default() };
        self.budget.update(&mut self.recorded, usage);
    }

    fn remove_expired(&mut self, now: Timestamp) {
        while self.order.front().is_some_and(|(expires_at, _)| now >= *expires_at) {
            self.remove_oldest();
        }
    }

    fn remove_oldest(&mut self) {
        let Some((expires_at, id)) = self.order.pop_front() else { return };
        // The id may have been recorded again since.
        if self.records.get(&id).is_some_and(|record| record.expires_at == expires_at)
            && let Some(removed) = self.records.remove(&id)
        {
            self.heap -= removed.heap_bytes();
        }
    }
}
