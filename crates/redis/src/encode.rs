//! Encodes requests as the arguments of a call, for `lua/arguments.lua` and `lua/decide.lua`.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use tollgate_algorithms::{Id, Micros, Operation, Policy, Timestamp};

use crate::encoding::{MAX_NUMBER, PolicyEncoding, PolicyEncodings, put_number};
use crate::keyspace::Keyspace;
use crate::request::StoreRequest;
use crate::request_id::Role;

/// A call of the script.
#[derive(Clone, Debug, Default)]
pub(crate) struct Call {
    /// The keys of the checks, then the records of request ids.
    pub(crate) keys: Vec<Vec<u8>>,
    pub(crate) args: Vec<Vec<u8>>,
    /// For each request, its slots.
    pub(crate) slots: Vec<Vec<Slot>>,
    /// The policy of each of the checks' keys, and its encoding.
    pub(crate) checked: Vec<(Policy, Arc<PolicyEncoding>)>,
}

/// The arguments of a call without requests.
pub(crate) const NO_REQUESTS: [&str; 3] = ["", "", "0"];

impl Call {
    /// A call without requests.
    pub(crate) fn empty() -> Self {
        Call { args: NO_REQUESTS.map(Vec::from).into(), ..Call::default() }
    }
}

/// The time of a test or of a replayed log, in place of the server's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InjectedTime {
    pub(crate) now: Timestamp,
    /// The maximum number of log entries in the bytes of a key, in place of the script's default; a
    /// quarter of it for leases.
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
}

const CHECK: u8 = 0;
const ACQUIRE: u8 = 10;
const INSPECT: u8 = 13;
const UNDO: u8 = 14;
const SETTLE: u8 = 15;
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
        let slots = writer.slots(request);
        writer.call.slots.push(slots);
    }
    requests.iter().for_each(|request| writer.add_record(request));
    for (index, request) in requests.iter().enumerate() {
        writer.put_request(index, request);
    }
    writer.finish(now)
}

struct Writer<'a> {
    keyspace: &'a Keyspace,
    encodings: &'a PolicyEncodings,
    horizon: Micros,
    call: Call,
    /// The indices of the checks' keys.
    key_indices: HashMap<(&'a str, &'a [u8]), usize>,
    /// The indices of the records of request ids.
    record_indices: HashMap<Vec<u8>, usize>,
    /// The policies of the slots, with their encodings and their positions among the arguments.
    policies: Vec<(&'a Policy, Arc<PolicyEncoding>, usize)>,
    arguments: Vec<Arc<PolicyEncoding>>,
    /// For each request, the positions of its id's key and of that of the charge that it settles, counted
    /// from 1; 0 for none.
    ids: Vec<(usize, usize)>,
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
            record_indices: HashMap::new(),
            policies: Vec::new(),
            arguments: Vec::new(),
            ids: Vec::new(),
            requests: Vec::new(),
        }
    }

    /// Returns the slots of a request; adds their keys, unless it needs the record of its id only.
    fn slots(&mut self, request: &'a StoreRequest) -> Vec<Slot> {
        let mut slots: Vec<Slot> = Vec::with_capacity(request.checks.len());
        for (index, check) in request.checks.iter().enumerate() {
            let cost = check.cost.get();
            let has_key = |slot: &&mut Slot| request.checks[slot.checks[0]].has_key_of(check);
            if let Some(slot) = slots.iter_mut().find(has_key) {
                slot.cost = slot.cost.saturating_add(cost).min(MAX_NUMBER);
                slot.checks.push(index);
                continue;
            }
            let (encoding, argument) = self.encoding(&check.policy);
            let key_index = match request.is_record_only() {
                true => 0,
                false => self.key_index(&check.policy, &check.key, &encoding),
            };
            slots.push(Slot {
                policy: check.policy.clone(),
                encoding,
                argument,
                key_index,
                cost,
                checks: vec![index],
            });
        }
        slots
    }

    fn key_index(
        &mut self,
        policy: &'a Policy,
        key: &'a [u8],
        encoding: &Arc<PolicyEncoding>,
    ) -> usize {
        let call = &mut self.call;
        *self.key_indices.entry((policy.name(), key)).or_insert_with(|| {
            call.keys.push(self.keyspace.name(policy.name(), key));
            call.checked.push((policy.clone(), Arc::clone(encoding)));
            call.keys.len() - 1
        })
    }

    /// Adds the key of the record of a request id, and that of the charge that it settles.
    fn add_record(&mut self, request: &StoreRequest) {
        let mut positions = (0, 0);
        if let (Some(id), Some(first)) = (&request.request_id, request.checks.first()) {
            let partition = self.keyspace.partition_of(&first.key);
            positions.0 = self.record_position(self.keyspace.record(partition, id));
            if let Some(charge) = self.keyspace.charge_record(partition, id) {
                positions.1 = self.record_position(charge);
            }
        }
        self.ids.push(positions);
    }

    fn record_position(&mut self, name: Vec<u8>) -> usize {
        let next = self.call.keys.len();
        let index = *self.record_indices.entry(name).or_insert_with_key(|name| {
            self.call.keys.push(name.clone());
            next
        });
        index + 1
    }

    fn put_request(&mut self, index: usize, request: &'a StoreRequest) {
        let role = request.request_id.as_ref().map(|id| id.role);
        let operation = match role {
            _ if request.inspects => INSPECT,
            Some(Role::Undo { .. } | Role::Forget) => UNDO,
            _ => number_of(&request.executed_operation()),
        };
        let named = if request.request_id.is_some() { NAMED } else { 0 };
        let slots = std::mem::take(&mut self.call.slots[index]);
        #[expect(clippy::expect_used, reason = "validated: a request has at most 32 checks")]
        let count = u8::try_from(slots.len()).expect("the number of slots fits u8");
        let count = if request.is_record_only() { 0 } else { count };
        self.requests.extend([operation + named, count]);
        for slot in &slots[..usize::from(count)] {
            self.put_u16(slot.argument);
            self.put_u16(slot.key_index + 1);
            put_number(&mut self.requests, slot.cost);
        }
        let out = &mut self.requests;
        match (request.executed_operation(), role) {
            (_, Some(Role::Undo { lease })) => put_id(out, lease.unwrap_or(Id::from_u128(0))),
            (_, Some(Role::Forget)) => put_id(out, Id::from_u128(0)),
            (operation, _) => put_operation(out, operation),
        }
        if let Some(id) = &request.request_id {
            let (own, charge) = self.ids[index];
            self.put_u16(own);
            self.requests.extend(id.fingerprint.to_be_bytes());
            put_number(&mut self.requests, self.horizon.get().min(MAX_NUMBER));
            self.requests.push(id.role.number());
            put_number(&mut self.requests, id.attempt);
            if matches!(operation, CHECK | ACQUIRE | SETTLE) {
                self.requests.extend(id.target.to_be_bytes());
            }
            if operation == SETTLE {
                self.put_u16(charge);
            }
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
        // Without records, all keys are those of checks.
        let checked = self.call.checked.len();
        let has_records = checked < self.call.keys.len();
        let checked = if has_records { checked.to_string().into_bytes() } else { Vec::new() };
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
        Operation::Backfill { limit, time } => {
            put_number(out, time.as_micros());
            out.push(limit);
        }
        Operation::Block { span } => {
            put_number(out, span.map_or(0, |span| span.get().min(MAX_NUMBER - 1) + 1));
        }
        _ => {}
    }
}

/// Returns the number of an operation in the script's table.
fn number_of(operation: &Operation) -> u8 {
    match operation {
        Operation::Check { lease: None } => CHECK,
        Operation::Peek => 1,
        Operation::Take => 2,
        Operation::Reserve { .. } => 3,
        Operation::Cancel { .. } => 4,
        Operation::Refund { .. } => 5,
        Operation::Penalize => 6,
        Operation::Reset => 7,
        Operation::Block { .. } => 8,
        Operation::Unblock => 9,
        Operation::Check { lease: Some(_) } | Operation::Acquire { .. } => ACQUIRE,
        Operation::Renew { .. } => 11,
        Operation::Release { .. } => 12,
        Operation::Settle => SETTLE,
        Operation::Backfill { .. } => 16,
        operation => unreachable!("the script has no operation {operation:?}"),
    }
}

fn put_id(out: &mut Vec<u8>, id: Id) {
    out.extend(id.as_u128().to_be_bytes());
}
