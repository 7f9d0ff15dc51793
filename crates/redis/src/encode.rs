//! Encodes requests as the arguments of a call, for `lua/arguments.lua` and `lua/decide.lua`.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use tollgate_core::{Id, Limit, Micros, Operation, Policy, Timestamp};

use crate::encoding::{MAX_NUMBER, PolicyEncoding, PolicyEncodings, put_number};
use crate::keyspace::{Keyspace, Part};
use crate::request::StoreRequest;
use crate::request_id::Role;

/// A call of the script.
#[derive(Clone, Debug, Default)]
pub(crate) struct Call {
    /// The keys of the checks, then the keys that belong to those.
    pub(crate) keys: Vec<Vec<u8>>,
    pub(crate) args: Vec<Vec<u8>>,
    /// For each request, its slots.
    pub(crate) slots: Vec<Vec<Slot>>,
    /// The policy and key of each of the checks' keys.
    pub(crate) checked: Vec<(Policy, Box<[u8]>)>,
    /// The encoding of each of these policies.
    pub(crate) encodings: Vec<Arc<PolicyEncoding>>,
}

/// The time of a test or of a replayed log, in place of the server's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InjectedTime {
    pub(crate) now: Timestamp,
    /// The maximum number of log entries in a key, in place of the script's default.
    pub(crate) short_log: Option<u16>,
}

impl fmt::Display for InjectedTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.now.as_micros())?;
        self.short_log.map_or(Ok(()), |short_log| write!(f, " {short_log}"))
    }
}

/// All checks of a request on one (policy, key), with the sum of their costs.
#[derive(Clone, Debug)]
pub(crate) struct Slot {
    pub(crate) policy: Policy,
    pub(crate) encoding: Arc<PolicyEncoding>,
    /// The position of the policy among the arguments, counted from 1.
    pub(crate) argument: usize,
    /// The index of the key in the call.
    pub(crate) key_index: usize,
    pub(crate) cost: u64,
    /// The indices of the checks in the request.
    pub(crate) checks: Vec<usize>,
    /// The position of the first key that belongs to this one, counted from 1; 0 for none.
    pub(crate) related: usize,
}

const INSPECT: u8 = 13;
const UNDO: u8 = 14;
const NAMED: u8 = 128;

/// Encodes a call that decides the requests, all of one partition, in order.
pub(crate) fn encode(
    requests: &[StoreRequest],
    keyspace: &Keyspace,
    encodings: &PolicyEncodings,
    now: Option<InjectedTime>,
    horizon: Micros,
) -> Call {
    let mut writer = Writer::new(keyspace, encodings, horizon);
    for request in requests {
        writer.add_slots(request);
    }
    writer.add_related_keys(requests);
    for (index, request) in requests.iter().enumerate() {
        writer.put_request(index, request);
    }
    writer.finish(now)
}

/// Returns the parts of a key that this request needs besides its state.
fn related_parts(request: &StoreRequest, policy: &Policy) -> &'static [Part] {
    let uses_reservations = matches!(
        request.operation,
        Operation::Reserve { .. } | Operation::Cancel { .. } | Operation::Reset
    ) || request.inspects;
    if uses_reservations && policy.limits().iter().all(Limit::can_reserve) {
        &[Part::ReservationsById, Part::ReservationsByTime]
    } else {
        &[]
    }
}

struct Writer<'a> {
    keyspace: &'a Keyspace,
    encodings: &'a PolicyEncodings,
    horizon: Micros,
    call: Call,
    /// The indices of the checks' keys.
    key_indices: HashMap<(&'a str, &'a [u8]), usize>,
    /// The indices of all other keys.
    related_indices: HashMap<Vec<u8>, usize>,
    /// The policies of the slots, with their encodings and their positions among the arguments.
    policies: Vec<(&'a Policy, Arc<PolicyEncoding>, usize)>,
    arguments: Vec<Arc<PolicyEncoding>>,
    /// For each request, the position of its id's key, counted from 1; 0 for none.
    ids: Vec<usize>,
    requests: Vec<u8>,
}

impl<'a> Writer<'a> {
    fn new(keyspace: &'a Keyspace, encodings: &'a PolicyEncodings, horizon: Micros) -> Self {
        Writer {
            keyspace,
            encodings,
            horizon,
            call: Call::default(),
            key_indices: HashMap::new(),
            related_indices: HashMap::new(),
            policies: Vec::new(),
            arguments: Vec::new(),
            ids: Vec::new(),
            requests: Vec::new(),
        }
    }

    fn add_slots(&mut self, request: &'a StoreRequest) {
        let mut slots: Vec<Slot> = Vec::with_capacity(request.checks.len());
        for (index, check) in request.checks.iter().enumerate() {
            let key_index = self.key_index(&check.policy, &check.key);
            let cost = check.cost.get();
            if let Some(slot) = slots.iter_mut().find(|slot| slot.key_index == key_index) {
                slot.cost = slot.cost.saturating_add(cost).min(MAX_NUMBER);
                slot.checks.push(index);
                continue;
            }
            let (encoding, argument) = self.encoding(&check.policy);
            if key_index == self.call.encodings.len() {
                self.call.encodings.push(Arc::clone(&encoding));
            }
            slots.push(Slot {
                policy: check.policy.clone(),
                encoding,
                argument,
                key_index,
                cost,
                checks: vec![index],
                related: 0,
            });
        }
        self.call.slots.push(slots);
    }

    fn key_index(&mut self, policy: &'a Policy, key: &'a [u8]) -> usize {
        let call = &mut self.call;
        *self.key_indices.entry((policy.name(), key)).or_insert_with(|| {
            call.keys.push(self.keyspace.name(&Part::State, policy.name(), key));
            call.checked.push((policy.clone(), key.into()));
            call.keys.len() - 1
        })
    }

    /// Adds the keys that belong to the checks' keys, and the keys of request ids.
    fn add_related_keys(&mut self, requests: &'a [StoreRequest]) {
        let mut slots = std::mem::take(&mut self.call.slots);
        for (request, slots) in requests.iter().zip(&mut slots) {
            for slot in slots {
                let key = &request.checks[slot.checks[0]].key;
                slot.related =
                    self.add_parts(related_parts(request, &slot.policy), &slot.policy, key);
            }
        }
        self.call.slots = slots;
        for request in requests {
            let mut position = 0;
            if let (Some(id), Some(first)) = (&request.request_id, request.checks.first()) {
                let partition = self.keyspace.partition_of(&first.key);
                let name = self.keyspace.record(partition, id);
                position = self.related_index(vec![name]) + 1;
            }
            self.ids.push(position);
        }
    }

    /// Returns the position of the first of these parts of a key, counted from 1; 0 for none.
    fn add_parts(&mut self, parts: &[Part], policy: &Policy, key: &[u8]) -> usize {
        if parts.is_empty() {
            return 0;
        }
        let names = parts.iter().map(|part| self.keyspace.name(part, policy.name(), key)).collect();
        self.related_index(names) + 1
    }

    /// Returns the index of the first of these keys, which are consecutive; adds them if necessary.
    fn related_index(&mut self, names: Vec<Vec<u8>>) -> usize {
        let keys = &mut self.call.keys;
        let known = names.first().and_then(|name| self.related_indices.get(name)).copied();
        if let Some(index) = known.filter(|index| keys[*index..].starts_with(&names)) {
            return index;
        }
        let index = keys.len();
        self.related_indices.extend(names.iter().cloned().zip(index..));
        keys.extend(names);
        index
    }

    fn put_request(&mut self, index: usize, request: &'a StoreRequest) {
        let role = request.request_id.as_ref().map(|id| id.role);
        let operation = match role {
            _ if request.inspects => INSPECT,
            Some(Role::Undo { .. }) => UNDO,
            _ => number_of(&request.executed_operation()),
        };
        let named = if request.request_id.is_some() { NAMED } else { 0 };
        let slots = std::mem::take(&mut self.call.slots[index]);
        #[expect(clippy::expect_used, reason = "validated: a request has at most 16 checks")]
        let count = u8::try_from(slots.len()).expect("the number of slots fits u8");
        self.requests.extend([operation + named, count]);
        for slot in &slots {
            self.put_u16(slot.argument);
            self.put_u16(slot.key_index + 1);
            self.put_u16(slot.related);
            put_number(&mut self.requests, slot.cost);
        }
        let out = &mut self.requests;
        match (request.executed_operation(), role) {
            (_, Some(Role::Undo { lease })) => put_id(out, lease.unwrap_or(Id::from_u128(0))),
            (operation, _) => put_operation(out, operation),
        }
        if let Some(id) = &request.request_id {
            self.put_u16(self.ids[index]);
            self.requests.extend(id.fingerprint.to_be_bytes());
            put_number(&mut self.requests, self.horizon.get().min(MAX_NUMBER));
            self.requests.push(id.role.number());
            put_number(&mut self.requests, id.attempt);
        }
        self.call.slots[index] = slots;
    }

    /// Returns the encoding of a policy, and its position among the arguments, counted from 1.
    fn encoding(&mut self, policy: &'a Policy) -> (Arc<PolicyEncoding>, usize) {
        let known = self.policies.iter().find(|(known, ..)| known.ptr_eq(policy));
        if let Some((_, encoding, argument)) = known {
            return (Arc::clone(encoding), *argument);
        }
        let encoding = self.encodings.get(policy);
        // The script gets nothing else, so policies with equal encodings share an argument.
        let equal = self.arguments.iter().position(|known| *known == encoding);
        let index = equal.unwrap_or_else(|| {
            self.arguments.push(Arc::clone(&encoding));
            self.arguments.len() - 1
        });
        self.policies.push((policy, Arc::clone(&encoding), index + 1));
        (encoding, index + 1)
    }

    fn put_u16(&mut self, number: usize) {
        #[expect(clippy::expect_used, reason = "a call has at most 500 requests and their keys")]
        let number = u16::try_from(number).expect("a position fits u16");
        self.requests.extend(number.to_le_bytes());
    }

    fn finish(mut self, now: Option<InjectedTime>) -> Call {
        let now = now.map_or(Vec::new(), |now| now.to_string().into_bytes());
        let checked = self.call.checked.len().to_string().into_bytes();
        self.call.args = vec![now, self.requests, checked];
        let arguments = self.arguments.iter().map(|encoding| encoding.argument().to_vec());
        self.call.args.extend(arguments);
        self.call
    }
}

/// Appends the arguments of an operation.
fn put_operation(out: &mut Vec<u8>, operation: Operation) {
    match operation {
        Operation::Reserve { id, max_wait } => {
            put_id(out, id);
            put_number(out, max_wait.get().min(MAX_NUMBER));
        }
        Operation::Check { lease: Some(id) }
        | Operation::Acquire { lease: id }
        | Operation::Cancel { id }
        | Operation::Renew { lease: id }
        | Operation::Release { lease: id } => put_id(out, id),
        Operation::Refund { time } => put_number(out, time.map_or(0, |time| time.as_micros() + 1)),
        Operation::Block { span } => {
            put_number(out, span.map_or(0, |span| span.get().min(MAX_NUMBER - 1) + 1));
        }
        _ => {}
    }
}

/// Returns the number of an operation in the script's table.
fn number_of(operation: &Operation) -> u8 {
    match operation {
        Operation::Check { lease: None } => 0,
        Operation::Peek => 1,
        Operation::Take => 2,
        Operation::Reserve { .. } => 3,
        Operation::Cancel { .. } => 4,
        Operation::Refund { .. } => 5,
        Operation::Penalize => 6,
        Operation::Reset => 7,
        Operation::Block { .. } => 8,
        Operation::Unblock => 9,
        Operation::Check { lease: Some(_) } | Operation::Acquire { .. } => 10,
        Operation::Renew { .. } => 11,
        Operation::Release { .. } => 12,
        operation => unreachable!("the script has no operation {operation:?}"),
    }
}

fn put_id(out: &mut Vec<u8>, id: Id) {
    out.extend(id.as_u128().to_be_bytes());
}
