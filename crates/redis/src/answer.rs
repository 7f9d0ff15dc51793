//! What a call says, as answers.
//!
//! The script replies with the bytes of each key as they were and what became of each request. The
//! words of an answer follow from that by the same arithmetic that decides in memory, run here, so
//! the server does no more than it must, and each decision is made twice and compared.

use std::sync::Arc;

use redis::Value;
use tollgate_core::codec::Bytes;
use tollgate_core::{
    Anomalies, Block, CheckContext, Decision, Id, Inspection, KeyState, Operation, Policy,
    RequestError, Timestamp, decide, inspect,
};
use tollgate_store::{Answer, StoreError};

use crate::ask::{Call, Slot};
use crate::asked::Asked;
use crate::encoding::{self, PolicyEncoding, Unreadable};
use crate::error;

/// What one request was told.
#[derive(Clone, Debug)]
pub(crate) enum Told {
    Decisions(Answer),
    Inspection(Inspection),
}

/// The answers of a call.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) outcomes: Vec<Result<Told, StoreError>>,
    /// How many keys held what no charge can have made.
    pub(crate) junk: u64,
    pub(crate) anomalies: Anomalies,
}

/// Reads the reply to the call of these requests.
pub(crate) fn decode(
    requests: &[Asked],
    call: &Call,
    reply: Value,
) -> Result<Answered, StoreError> {
    let reply = Reply::of(requests, call, reply).ok_or_else(|| error::protocol("its shape"))?;
    let mut keys: Vec<Kept> = call
        .checked
        .iter()
        .zip(&call.encodings)
        .zip(&reply.keys)
        .map(|(((policy, _), encoding), bytes)| Kept::read(policy, encoding, bytes))
        .collect();
    let mut anomalies = Anomalies::default();
    let each = requests.iter().zip(&call.slots).zip(&reply.verdicts).enumerate();
    let outcomes = each.map(|(index, ((request, slots), verdict))| {
        let added: Vec<&[u8]> = reply.added_to(index).collect();
        match verdict {
            b'0' | b'1' => {
                let once = Once { request, slots, now: reply.now, added };
                once.tell(&mut keys, *verdict == b'1', &mut anomalies)
            }
            b'r' => repeat(request, slots, &added),
            b'u' => Err(RequestError::RequestIdReused.into()),
            b's' => Err(error::schema()),
            _ => Err(error::protocol("a verdict")),
        }
    });
    let outcomes = outcomes.collect();
    Ok(Answered { outcomes, junk: reply.junk, anomalies })
}

/// The parts of a reply.
struct Reply {
    now: Timestamp,
    verdicts: Vec<u8>,
    junk: u64,
    keys: Vec<Vec<u8>>,
    /// What single requests add, each with the request's place counted from 1.
    added: Vec<(usize, Vec<u8>)>,
}

impl Reply {
    fn of(requests: &[Asked], call: &Call, reply: Value) -> Option<Self> {
        let Value::Array(parts) = reply else { return None };
        let mut parts = parts.into_iter().map(|part| match part {
            Value::BulkString(bytes) => Some(bytes),
            _ => None,
        });
        let now = Timestamp::from_micros(number(&parts.next()??)?);
        let verdicts = parts.next()??;
        let junk = number(&parts.next()??)?;
        let keys = parts.by_ref().take(call.checked.len()).collect::<Option<Vec<_>>>()?;
        let mut added = Vec::new();
        while let Some(index) = parts.next() {
            added.push((usize::try_from(number(&index?)?).ok()?, parts.next()??));
        }
        let whole = verdicts.len() == requests.len() && keys.len() == call.checked.len();
        whole.then_some(Reply { now, verdicts, junk, keys, added })
    }

    fn added_to(&self, request: usize) -> impl Iterator<Item = &[u8]> {
        self.added.iter().filter(move |(of, _)| *of == request + 1).map(|(_, x)| &**x)
    }
}

fn number(text: &[u8]) -> Option<u64> {
    str::from_utf8(text).ok()?.parse().ok()
}

/// What a key holds as the requests of a call go on.
#[derive(Debug, Default)]
struct Kept {
    state: KeyState,
    block: Option<Block>,
    /// The script has not called these bytes junk, and they cannot be read here.
    unreadable: bool,
}

/// What the script says of a key that holds what no charge can have made.
const JUNK: &[u8] = b"?";

impl Kept {
    fn read(policy: &Policy, encoding: &PolicyEncoding, bytes: &[u8]) -> Kept {
        if bytes == JUNK {
            return Kept::default();
        }
        match encoding::decode_key(policy, encoding, bytes) {
            Ok((state, block)) => Kept { state, block, unreadable: false },
            Err(Unreadable::Corrupt) => Kept { unreadable: true, ..Kept::default() },
            // The script has left it alone, and says so in the verdict.
            Err(Unreadable::Schema) => Kept::default(),
        }
    }
}

/// A request that was decided in this call.
struct Once<'a> {
    request: &'a Asked,
    slots: &'a [Slot],
    now: Timestamp,
    added: Vec<&'a [u8]>,
}

impl Once<'_> {
    /// Decides it as the script did, and holds the two against each other.
    fn tell(
        &self,
        keys: &mut [Kept],
        admitted: bool,
        anomalies: &mut Anomalies,
    ) -> Result<Told, StoreError> {
        let mut kept: Vec<Kept> =
            self.slots.iter().map(|slot| std::mem::take(&mut keys[slot.place])).collect();
        let told = self.tell_of(&mut kept, anomalies);
        let unreadable = kept.iter().any(|x| x.unreadable);
        for (slot, kept) in self.slots.iter().zip(kept) {
            keys[slot.place] = kept;
        }
        match told? {
            // To deny, the script need not look at every key.
            _ if unreadable && admitted => Err(error::disagreement("what a key holds")),
            Told::Decisions(answer)
                if self.request.verb.decides() && self.request.verb != Operation::Peek =>
            {
                if answer.allowed() == admitted {
                    Ok(Told::Decisions(answer))
                } else {
                    Err(error::disagreement("whether a request is admitted"))
                }
            }
            told => Ok(told),
        }
    }

    /// What the request adds to the reply of one sort.
    fn added_as(&self, sort: u8) -> impl Iterator<Item = &[u8]> {
        let of_sort = move |x: &&[u8]| x.first() == Some(&sort);
        self.added.iter().copied().filter(of_sort).filter_map(|added| added.get(1..))
    }

    fn tell_of(&self, kept: &mut [Kept], anomalies: &mut Anomalies) -> Result<Told, StoreError> {
        let malformed = |_| error::protocol("a reservation");
        for bytes in self.added_as(b'k') {
            let unreadable = || error::disagreement("what a key holds");
            let (place, bytes) = bytes.split_first().ok_or_else(unreadable)?;
            let place = usize::from(*place);
            let (Some(slot), Some(kept)) = (self.slots.get(place), kept.get_mut(place)) else {
                return Err(unreadable());
            };
            *kept = Kept::read(&slot.policy, &slot.encoding, bytes);
        }
        if let ([slot], [kept]) = (self.slots, &mut *kept) {
            let named = match self.request.verb {
                Operation::Reserve { id, .. } | Operation::Cancel { id } => Some(id),
                _ => None,
            };
            for bytes in self.added_as(b'r') {
                let (id, bytes) = match named {
                    Some(id) => (id, bytes),
                    None => with_id(bytes).ok_or_else(|| error::protocol("a reservation"))?,
                };
                let Slot { policy, encoding, .. } = slot;
                encoding::add_reservation(&mut kept.state, policy, encoding, id, bytes, self.now)
                    .map_err(malformed)?;
            }
            if self.request.inspects {
                let (policy, cost) = (&slot.policy, slot.cost);
                let context =
                    CheckContext { policy, state: &mut kept.state, block: &mut kept.block, cost };
                return Ok(Told::Inspection(inspect(&context, self.now)));
            }
        }
        let decisions = decide_slots(&self.request.verb, self.slots, kept, self.now, anomalies);
        Ok(Told::Decisions(answer(self.request, self.slots, decisions)))
    }
}

fn with_id(bytes: &[u8]) -> Option<(Id, &[u8])> {
    let (id, bytes) = bytes.split_first_chunk()?;
    Some((Id::from_u128(u128::from_be_bytes(*id)), bytes))
}

fn decide_slots(
    verb: &Operation,
    slots: &[Slot],
    kept: &mut [Kept],
    now: Timestamp,
    anomalies: &mut Anomalies,
) -> Vec<Decision> {
    let mut decided: Vec<_> = slots
        .iter()
        .zip(kept)
        .map(|(slot, kept)| CheckContext {
            policy: &slot.policy,
            state: &mut kept.state,
            block: &mut kept.block,
            cost: slot.cost,
        })
        .collect();
    decide(verb, &mut decided, now, anomalies)
}

/// A decision for each check: those of one key share one, and each was granted its own cost.
fn answer(request: &Asked, slots: &[Slot], decisions: Vec<Decision>) -> Answer {
    let mut by_check = vec![Decision::default(); request.checks.len()];
    for (slot, decision) in slots.iter().zip(decisions) {
        for check in &slot.checks {
            let mut decision = decision.clone();
            if slot.checks.len() > 1 && decision.granted > 0 {
                decision.granted = request.checks[*check].cost.get();
            }
            by_check[*check] = decision;
        }
    }
    Answer { decisions: by_check }
}

/// The first answer to a request that came again: what it followed from is decided once more.
fn repeat(request: &Asked, slots: &[Slot], added: &[&[u8]]) -> Result<Told, StoreError> {
    let read = || -> Result<Told, Unreadable> {
        let mut from = Bytes::new(
            added.first().and_then(|added| added.strip_prefix(b"i")).unwrap_or_default(),
        );
        let now = Timestamp::from_micros(encoding::number(&mut from)?);
        let drawn = from.prefixed()?.try_into().ok().map(u128::from_be_bytes).map(Id::from_u128);
        let mut kept = Vec::with_capacity(slots.len());
        let mut then = Vec::with_capacity(slots.len());
        for slot in slots {
            // The limits may have changed since.
            let policy = slot.encoding.version(&slot.policy, from.prefixed()?)?;
            let encoding = if policy.ptr_eq(&slot.policy) {
                Arc::clone(&slot.encoding)
            } else {
                Arc::new(PolicyEncoding::new(&policy))
            };
            let (state, block) = encoding::decode_key(&policy, &encoding, from.prefixed()?)?;
            kept.push(Kept { state, block, unreadable: false });
            then.push(Slot { policy, encoding, ..slot.clone() });
        }
        let slots = &then[..];
        let (verb, rest) = (with_drawn(request.verb, drawn), from.take_rest());
        if let (Operation::Reserve { id, .. } | Operation::Cancel { id }, [slot], [kept], false) =
            (verb, slots, &mut kept[..], rest.is_empty())
        {
            let Slot { policy, encoding, .. } = slot;
            encoding::add_reservation(&mut kept.state, policy, encoding, id, rest, now)?;
        }
        let decisions = decide_slots(&verb, slots, &mut kept, now, &mut Anomalies::default());
        let mut answer = answer(request, slots, decisions);
        answer.decisions.iter_mut().for_each(|decision| decision.replayed = true);
        Ok(Told::Decisions(answer))
    };
    read().map_err(|_| error::protocol("a remembered answer"))
}

/// The verb with the id that was drawn the first time.
fn with_drawn(verb: Operation, drawn: Option<Id>) -> Operation {
    match (verb, drawn) {
        (Operation::Check { .. }, lease) => Operation::Check { lease },
        (Operation::Acquire { .. }, Some(lease)) => Operation::Acquire { lease },
        (Operation::Reserve { max_wait, .. }, Some(id)) => Operation::Reserve { id, max_wait },
        (verb, _) => verb,
    }
}
