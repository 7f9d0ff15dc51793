//! Decodes the reply to a call.
//!
//! The script returns the previous bytes of each key and a verdict for each request. This module
//! computes the decisions from them with the same arithmetic as the in-memory store. So the server
//! does as little as possible, and each decision is made twice and compared.

use std::sync::Arc;

use redis::Value;
use tollgate_algorithms::codec::Bytes;
use tollgate_algorithms::{
    Anomalies, Block, CheckContext, Decision, Id, KeyState, Operation, Policy, RecordedCharge,
    RequestError, Timestamp, decide, inspect, settle, split_settled,
};
use tollgate_state::{Answer, StoreError};

use crate::encode::{Call, Slot};
use crate::encoding::{self, PolicyEncoding, Unreadable};
use crate::error;
use crate::request::{Response, StoreRequest, in_order};
use crate::request_id::Role;

/// A decoded reply.
#[derive(Debug)]
pub(crate) struct DecodedReply {
    pub(crate) outcomes: Vec<Result<Response, StoreError>>,
    /// The number of keys with corrupt contents.
    pub(crate) corrupt: u64,
    pub(crate) anomalies: Anomalies,
}

/// Decodes the reply to a call with these requests.
pub(crate) fn decode(
    requests: &[StoreRequest],
    call: &Call,
    reply: Value,
) -> Result<DecodedReply, StoreError> {
    let reply = Reply::parse(requests, call, reply).ok_or_else(|| error::protocol("structure"))?;
    let mut keys: Vec<KeyContents> = call
        .checked
        .iter()
        .zip(&reply.keys)
        .map(|((policy, encoding), bytes)| KeyContents::parse(policy, encoding, bytes))
        .collect();
    let mut anomalies = Anomalies::default();
    let each = requests.iter().zip(&call.slots).zip(&reply.verdicts).enumerate();
    let outcomes = each.map(|(index, ((request, slots), verdict))| {
        let added: Vec<&[u8]> = reply.added_to(index).collect();
        let execution = Execution { request, slots, now: reply.now, added };
        match verdict {
            b'0' | b'1' if request.is_record_only() => Ok(execution.record()),
            b'0' if request.operation == Operation::Settle => execution.charge(),
            b'0' | b'1' => execution.verify(&mut keys, *verdict == b'1', &mut anomalies),
            b'r' => decode_repeat(request, slots, &execution.added),
            b'u' => Err(RequestError::RequestIdReused.into()),
            b'n' => Err(RequestError::UnknownCharge.into()),
            b'd' => Err(RequestError::ChargeSettled.into()),
            b'l' => Err(RequestError::LeaseCost.into()),
            b'x' => Ok(Response::Superseded),
            b's' => Err(error::schema()),
            b't' => Err(error::migrating()),
            _ => Err(error::protocol("verdict")),
        }
    });
    let outcomes = outcomes.collect();
    Ok(DecodedReply { outcomes, corrupt: reply.corrupt, anomalies })
}

/// The parts of a reply.
struct Reply {
    now: Timestamp,
    verdicts: Vec<u8>,
    corrupt: u64,
    keys: Vec<Vec<u8>>,
    /// Additional data of requests, each with the position of the request counted from 1.
    added: Vec<(usize, Vec<u8>)>,
}

impl Reply {
    fn parse(requests: &[StoreRequest], call: &Call, reply: Value) -> Option<Self> {
        let Value::Array(parts) = reply else { return None };
        let mut parts = parts.into_iter();
        let now = Timestamp::from_micros(number(parts.next()?)?);
        let verdicts = bytes(parts.next()?)?;
        let corrupt = number(parts.next()?)?;
        let keys = parts.by_ref().take(call.checked.len()).map(|part| match part {
            Value::Nil => Some(Vec::new()),
            part => bytes(part),
        });
        let keys = keys.collect::<Option<Vec<_>>>()?;
        let mut added = Vec::new();
        while let Some(index) = parts.next() {
            added.push((usize::try_from(number(index)?).ok()?, bytes(parts.next()?)?));
        }
        let is_complete = verdicts.len() == requests.len() && keys.len() == call.checked.len();
        is_complete.then_some(Reply { now, verdicts, corrupt, keys, added })
    }

    fn added_to(&self, request: usize) -> impl Iterator<Item = &[u8]> {
        let added = self.added.iter().filter(move |(position, _)| *position == request + 1);
        added.map(|(_, bytes)| &**bytes)
    }
}

fn number(value: Value) -> Option<u64> {
    match value {
        Value::Int(number) => u64::try_from(number).ok(),
        _ => None,
    }
}

fn bytes(value: Value) -> Option<Vec<u8>> {
    match value {
        Value::BulkString(bytes) => Some(bytes),
        _ => None,
    }
}

/// The contents of a key while the requests of a call are decided in order.
#[derive(Debug, Default)]
struct KeyContents {
    state: KeyState,
    block: Option<Block>,
    /// Whether the bytes cannot be parsed here, although the script did not report them as corrupt.
    unreadable: bool,
}

/// The reply for a key with corrupt contents.
const CORRUPT: &[u8] = b"?";

impl KeyContents {
    fn parse(policy: &Policy, encoding: &PolicyEncoding, bytes: &[u8]) -> KeyContents {
        if bytes == CORRUPT {
            return KeyContents::default();
        }
        match encoding::decode_key(policy, encoding, bytes) {
            Ok((state, block)) => KeyContents { state, block, unreadable: false },
            Err(Unreadable::Corrupt) => KeyContents { unreadable: true, ..KeyContents::default() },
            // The script left the key unchanged and reports that in the verdict.
            Err(Unreadable::Schema) => KeyContents::default(),
        }
    }
}

/// A request that was decided by this call.
struct Execution<'a> {
    request: &'a StoreRequest,
    slots: &'a [Slot],
    now: Timestamp,
    added: Vec<&'a [u8]>,
}

impl Execution<'_> {
    /// Decides the request again, and compares the decision with the script's.
    fn verify(
        &self,
        keys: &mut [KeyContents],
        admitted: bool,
        anomalies: &mut Anomalies,
    ) -> Result<Response, StoreError> {
        let mut contents: Vec<KeyContents> =
            self.slots.iter().map(|slot| std::mem::take(&mut keys[slot.key_index])).collect();
        let response = match self.request.request_id.as_ref().map(|id| id.role) {
            Some(Role::Undo { lease }) if admitted => self.undo(&mut contents, lease, anomalies),
            Some(Role::Undo { .. }) => Ok(nothing()),
            Some(Role::Claim) => {
                self.decide(&mut contents, anomalies).and_then(|response| self.claimed(response))
            }
            _ => self.decide(&mut contents, anomalies),
        };
        let operation = self.request.executed_operation();
        let is_unreadable = contents.iter().any(|contents| contents.unreadable);
        for (slot, contents) in self.slots.iter().zip(contents) {
            keys[slot.key_index] = contents;
        }
        match response? {
            // To deny, the script need not read every key.
            _ if is_unreadable && admitted => Err(error::verification("the contents of a key")),
            Response::Decisions(answer) if operation.decides() && operation != Operation::Peek => {
                if answer.allowed() == admitted {
                    Ok(Response::Decisions(answer))
                } else {
                    Err(error::verification("whether the request is admitted"))
                }
            }
            response => Ok(response),
        }
    }

    /// Returns the additional data of one kind.
    fn added_as(&self, kind: u8) -> impl Iterator<Item = &[u8]> {
        self.added.iter().filter_map(move |added| added.strip_prefix(&[kind]))
    }

    fn decide(
        &self,
        contents: &mut [KeyContents],
        anomalies: &mut Anomalies,
    ) -> Result<Response, StoreError> {
        let malformed = |_| error::protocol("reservation");
        self.replace_excerpts(contents)?;
        if let ([slot], [contents]) = (self.slots, &mut *contents) {
            let operation_id = match self.request.executed_operation() {
                Operation::Reserve { id, .. } | Operation::Cancel { id } => Some(id),
                _ => None,
            };
            for bytes in self.added_as(b'r') {
                let (id, bytes) = match operation_id {
                    Some(id) => (id, bytes),
                    None => with_id(bytes).ok_or_else(|| error::protocol("reservation"))?,
                };
                let Slot { policy, encoding, .. } = slot;
                encoding::add_reservation(
                    &mut contents.state,
                    policy,
                    encoding,
                    id,
                    bytes,
                    self.now,
                )
                .map_err(malformed)?;
            }
            if self.request.inspects {
                let (policy, cost) = (&slot.policy, slot.cost);
                let context = CheckContext {
                    policy,
                    state: &mut contents.state,
                    block: &mut contents.block,
                    cost,
                };
                return Ok(Response::Inspection(Box::new(inspect(&context, self.now))));
            }
        }
        if self.request.operation == Operation::Settle {
            let charges = self.added_as(b'h').next().ok_or_else(|| error::protocol("charges"))?;
            let answer =
                settle_slots(self.request, self.slots, contents, charges, self.now, anomalies)
                    .map_err(|_| error::protocol("charges"))?;
            return Ok(Response::Decisions(answer));
        }
        let decisions = decide_slots(
            &self.request.executed_operation(),
            self.slots,
            contents,
            self.now,
            anomalies,
        );
        Ok(Response::Decisions(into_answer(self.request, self.slots, decisions)))
    }

    /// Takes back the charges and the lease of a part.
    fn undo(
        &self,
        contents: &mut [KeyContents],
        lease: Option<Id>,
        anomalies: &mut Anomalies,
    ) -> Result<Response, StoreError> {
        // The logs of a refund have excerpts in the reply.
        self.replace_excerpts(contents)?;
        let charged_at = self.added_number().map(Timestamp::from_micros);
        let refund = Operation::Refund {
            time: Some(charged_at.ok_or_else(|| error::protocol("the time of a charge"))?),
        };
        let release = lease.map(|lease| Operation::Release { lease });
        for operation in [Some(refund), release].into_iter().flatten() {
            for (slot, contents) in self.slots.iter().zip(&mut *contents) {
                let (slot, contents) = (std::slice::from_ref(slot), std::slice::from_mut(contents));
                decide_slots(&operation, slot, contents, self.now, anomalies);
            }
        }
        Ok(nothing())
    }

    /// Returns when the part was charged whose record was deleted.
    fn record(&self) -> Response {
        Response::Record(self.added_number().map(Timestamp::from_micros))
    }

    /// Returns the fingerprint of a check whose charge can be settled.
    fn charge(&self) -> Result<Response, StoreError> {
        let fingerprint = self.added_as(b'f').next().and_then(|bytes| bytes.try_into().ok());
        let fingerprint =
            fingerprint.ok_or_else(|| error::protocol("the fingerprint of a charge"))?;
        Ok(Response::Charge(u128::from_be_bytes(fingerprint)))
    }

    /// Returns the number that the script added: of an attempt, or the time of a charge.
    fn added_number(&self) -> Option<u64> {
        let bytes = self.added_as(b'c').next()?;
        encoding::number(&mut Bytes::new(bytes)).ok()
    }

    /// Adds the number of the attempt to the decisions of a claim.
    fn claimed(&self, response: Response) -> Result<Response, StoreError> {
        match (response, self.added_number()) {
            (Response::Decisions(answer), Some(attempt)) => Ok(Response::Claimed(answer, attempt)),
            _ => Err(error::protocol("the attempt of a request id")),
        }
    }

    /// Replaces the contents of keys with long logs by the excerpts in the reply.
    fn replace_excerpts(&self, contents: &mut [KeyContents]) -> Result<(), StoreError> {
        for bytes in self.added_as(b'k') {
            let unreadable = || error::verification("the contents of a key");
            let (index, bytes) = bytes.split_first().ok_or_else(unreadable)?;
            let index = usize::from(*index);
            let (Some(slot), Some(contents)) = (self.slots.get(index), contents.get_mut(index))
            else {
                return Err(unreadable());
            };
            *contents = KeyContents::parse(&slot.policy, &slot.encoding, bytes);
        }
        Ok(())
    }
}

/// The response to a request without decisions.
fn nothing() -> Response {
    Response::Decisions(Answer { decisions: Vec::new() })
}

fn with_id(bytes: &[u8]) -> Option<(Id, &[u8])> {
    let (id, bytes) = bytes.split_first_chunk()?;
    Some((Id::from_u128(u128::from_be_bytes(*id)), bytes))
}

fn decide_slots(
    operation: &Operation,
    slots: &[Slot],
    contents: &mut [KeyContents],
    now: Timestamp,
    anomalies: &mut Anomalies,
) -> Vec<Decision> {
    let mut contexts: Vec<_> = slots
        .iter()
        .zip(contents)
        .map(|(slot, contents)| CheckContext {
            policy: &slot.policy,
            state: &mut contents.state,
            block: &mut contents.block,
            cost: slot.cost,
        })
        .collect();
    decide(operation, &mut contexts, now, anomalies)
}

/// Settles the charges of the slots, which the script read.
fn settle_slots(
    request: &StoreRequest,
    slots: &[Slot],
    contents: &mut [KeyContents],
    charges: &[u8],
    now: Timestamp,
    anomalies: &mut Anomalies,
) -> Result<Answer, Unreadable> {
    let mut from = Bytes::new(charges);
    let time = Timestamp::from_micros(encoding::number(&mut from)?);
    let mut decisions = Vec::with_capacity(request.checks.len());
    for (slot, contents) in slots.iter().zip(contents) {
        let is_charged = from.flag()?;
        let cost = encoding::number(&mut from)?;
        let [limits] = from.array()?;
        let recovers_at = (0..limits).map(|_| encoding::number(&mut from));
        let recovers_at = recovers_at.collect::<Result<Vec<_>, _>>()?;
        let charge = is_charged.then_some(RecordedCharge { cost, time, recovers_at });
        let mut context = CheckContext {
            policy: &slot.policy,
            state: &mut contents.state,
            block: &mut contents.block,
            cost: slot.cost,
        };
        let decision = settle(&mut context, charge.as_ref(), now, anomalies);
        let costs = slot.checks.iter().map(|check| request.checks[*check].cost.get());
        let costs: Vec<_> = costs.collect();
        for (check, granted) in slot.checks.iter().zip(split_settled(decision.granted, &costs)) {
            let mut own = decision.clone();
            own.granted = granted;
            decisions.push((*check, own));
        }
    }
    Ok(in_order(request.checks.len(), decisions))
}

/// Distributes the decisions of the slots to the checks. Checks of one slot share the decision, but
/// each was granted its own cost.
fn into_answer(request: &StoreRequest, slots: &[Slot], decisions: Vec<Decision>) -> Answer {
    let by_check = slots.iter().zip(decisions).flat_map(|(slot, decision)| {
        slot.checks.iter().map(move |check| {
            let mut decision = decision.clone();
            if slot.checks.len() > 1 && decision.granted > 0 {
                decision.granted = request.checks[*check].cost.get();
            }
            (*check, decision)
        })
    });
    in_order(request.checks.len(), by_check)
}

/// Decides a repeated request from the recorded state of its first execution.
fn decode_repeat(
    request: &StoreRequest,
    slots: &[Slot],
    added: &[&[u8]],
) -> Result<Response, StoreError> {
    let read = || -> Result<Response, Unreadable> {
        let record = added.first().and_then(|added| added.strip_prefix(b"i"));
        let mut from = Bytes::new(record.ok_or(Unreadable::Corrupt)?);
        let now = Timestamp::from_micros(encoding::number(&mut from)?);
        let recorded_id =
            from.prefixed()?.try_into().ok().map(u128::from_be_bytes).map(Id::from_u128);
        let mut contents = Vec::with_capacity(slots.len());
        let mut past_slots = Vec::with_capacity(slots.len());
        for slot in slots {
            // The limits may have changed since the first execution.
            let policy = slot.encoding.version(&slot.policy, from.prefixed()?)?;
            let encoding = if policy.ptr_eq(&slot.policy) {
                Arc::clone(&slot.encoding)
            } else {
                Arc::new(PolicyEncoding::new(&policy))
            };
            let (state, block) = encoding::decode_key(&policy, &encoding, from.prefixed()?)?;
            contents.push(KeyContents { state, block, unreadable: false });
            past_slots.push(Slot { policy, encoding, ..slot.clone() });
        }
        let slots = &past_slots[..];
        let (operation, rest) =
            (with_recorded_id(request.operation, recorded_id), from.take_rest());
        if operation == Operation::Settle {
            let anomalies = &mut Anomalies::default();
            let mut answer = settle_slots(request, slots, &mut contents, rest, now, anomalies)?;
            answer.decisions.iter_mut().for_each(|decision| decision.replayed = true);
            return Ok(Response::Decisions(answer));
        }
        if let (
            Operation::Reserve { id, .. } | Operation::Cancel { id },
            [slot],
            [contents],
            false,
        ) = (operation, slots, &mut contents[..], rest.is_empty())
        {
            let Slot { policy, encoding, .. } = slot;
            encoding::add_reservation(&mut contents.state, policy, encoding, id, rest, now)?;
        }
        let decisions =
            decide_slots(&operation, slots, &mut contents, now, &mut Anomalies::default());
        let mut answer = into_answer(request, slots, decisions);
        answer.decisions.iter_mut().for_each(|decision| decision.replayed = true);
        Ok(Response::Decisions(answer))
    };
    read().map_err(|_| error::protocol("record of a request id"))
}

/// Returns the operation with the random id of its first execution.
fn with_recorded_id(operation: Operation, id: Option<Id>) -> Operation {
    match (operation, id) {
        (Operation::Check { .. }, lease) => Operation::Check { lease },
        (Operation::Acquire { .. }, Some(lease)) => Operation::Acquire { lease },
        (Operation::Reserve { max_wait, .. }, Some(id)) => Operation::Reserve { id, max_wait },
        (operation, _) => operation,
    }
}
