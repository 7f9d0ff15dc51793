//! Requests as the arguments of a call; `lua/arguments.lua` and `lua/decide.lua` read them.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use tollgate_core::{Id, Kind, Limit, Micros, Operation, Policy, Timestamp};

use crate::asked::Asked;
use crate::encoding::{PolicyEncoding, PolicyEncodings, put_number};
use crate::names::{Names, Part};

/// A call of the script.
#[derive(Clone, Debug, Default)]
pub(crate) struct Call {
    /// Those of checks first, then those that belong to them.
    pub(crate) keys: Vec<Vec<u8>>,
    pub(crate) args: Vec<Vec<u8>>,
    /// For each request and each of its slots, which key it is of.
    pub(crate) slots: Vec<Vec<Slot>>,
    /// The policy and key of each of the first keys.
    pub(crate) checked: Vec<(Policy, Box<[u8]>)>,
    /// The encoding of each of these policies.
    pub(crate) encodings: Vec<Arc<PolicyEncoding>>,
}

/// What a test brings, or a log that is replayed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Injected {
    pub(crate) now: Timestamp,
    /// How many entries of a log stand in its key, where that is not what the script says.
    pub(crate) short_log: Option<u16>,
}

impl fmt::Display for Injected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.now.as_micros())?;
        self.short_log.map_or(Ok(()), |short_log| write!(f, " {short_log}"))
    }
}

/// All checks of a request on one (policy, key), as one of their summed cost.
#[derive(Clone, Debug)]
pub(crate) struct Slot {
    pub(crate) policy: Policy,
    pub(crate) encoding: Arc<PolicyEncoding>,
    /// The index of the policy among the arguments, counted from 1.
    pub(crate) argument: usize,
    pub(crate) place: usize,
    pub(crate) cost: u64,
    /// Which checks of the request it stands for.
    pub(crate) checks: Vec<usize>,
    /// Where the keys that belong to this one begin, counted from 1; 0 for none.
    pub(crate) own: usize,
}

const INSPECT: u8 = 13;
const NAMED: u8 = 128;

/// The call that decides the requests in order, which are all of one group.
pub(crate) fn encode(
    requests: &[Asked],
    names: &Names,
    encodings: &PolicyEncodings,
    now: Option<Injected>,
    horizon: Micros,
) -> Call {
    let mut writer = Writer::new(names, encodings, horizon);
    for request in requests {
        writer.find_slots(request);
    }
    writer.add_own_keys(requests);
    for (index, request) in requests.iter().enumerate() {
        writer.put_request(index, request);
    }
    writer.finish(now)
}

/// Which keys belong to a key, for this request under this policy: those of reservations, or the
/// long rows of logs. No policy has both.
fn own_parts(request: &Asked, policy: &Policy) -> Vec<Part> {
    let reserves = matches!(
        request.verb,
        Operation::Reserve { .. } | Operation::Cancel { .. } | Operation::Reset
    );
    if policy.limits().iter().all(Limit::can_reserve) {
        let both = [Part::ReservationsById, Part::ReservationsByTime];
        return if reserves || request.inspects { both.into() } else { Vec::new() };
    }
    let mut rows: Vec<Part> = Vec::new();
    for limit in policy.limits() {
        let precision = match limit.spec().kind {
            Kind::Log => Micros::ZERO,
            Kind::SlidingBy { precision, .. } => precision,
            _ => continue,
        };
        let row = |rank| Part::Row { window: limit.spec().window, precision, rank };
        let rank = (0..).find(|rank| !rows.contains(&row(*rank))).unwrap_or(0);
        rows.push(row(rank));
    }
    rows
}

struct Writer<'a> {
    names: &'a Names,
    encodings: &'a PolicyEncodings,
    horizon: Micros,
    call: Call,
    places: HashMap<(&'a str, &'a [u8]), usize>,
    /// Where the keys are that belong to those of checks, and those of request ids.
    others: HashMap<Vec<u8>, usize>,
    /// The policies of the slots, with their encodings and their indexes among the arguments.
    policies: Vec<(&'a Policy, Arc<PolicyEncoding>, usize)>,
    arguments: Vec<Arc<PolicyEncoding>>,
    /// For each request the place of its id's key, counted from 1.
    ids: Vec<usize>,
    requests: Vec<u8>,
}

impl<'a> Writer<'a> {
    fn new(names: &'a Names, encodings: &'a PolicyEncodings, horizon: Micros) -> Self {
        Writer {
            names,
            encodings,
            horizon,
            call: Call::default(),
            places: HashMap::new(),
            others: HashMap::new(),
            policies: Vec::new(),
            arguments: Vec::new(),
            ids: Vec::new(),
            requests: Vec::new(),
        }
    }

    fn find_slots(&mut self, request: &'a Asked) {
        let mut slots: Vec<Slot> = Vec::with_capacity(request.checks.len());
        for (index, check) in request.checks.iter().enumerate() {
            let place = self.place_of(&check.policy, &check.key);
            let cost = check.cost.get();
            if let Some(slot) = slots.iter_mut().find(|slot| slot.place == place) {
                slot.cost = slot.cost.saturating_add(cost).min(MAX_COST);
                slot.checks.push(index);
                continue;
            }
            let (encoding, argument) = self.encoding(&check.policy);
            if place == self.call.encodings.len() {
                self.call.encodings.push(Arc::clone(&encoding));
            }
            slots.push(Slot {
                policy: check.policy.clone(),
                encoding,
                argument,
                place,
                cost,
                checks: vec![index],
                own: 0,
            });
        }
        self.call.slots.push(slots);
    }

    fn place_of(&mut self, policy: &'a Policy, key: &'a [u8]) -> usize {
        let call = &mut self.call;
        *self.places.entry((policy.name(), key)).or_insert_with(|| {
            call.keys.push(self.names.of(&Part::State, policy.name(), key));
            call.checked.push((policy.clone(), key.into()));
            call.keys.len() - 1
        })
    }

    /// Adds the keys that belong to those of the checks, and those of request ids.
    fn add_own_keys(&mut self, requests: &'a [Asked]) {
        let mut slots = std::mem::take(&mut self.call.slots);
        for (request, slots) in requests.iter().zip(&mut slots) {
            for slot in slots {
                let key = &request.checks[slot.checks[0]].key;
                slot.own = self.add_parts(&own_parts(request, &slot.policy), &slot.policy, key);
            }
        }
        self.call.slots = slots;
        for request in requests {
            let mut place = 0;
            if let (Some(id), Some(first)) = (&request.request_id, request.checks.first()) {
                let group = self.names.group_of(&first.key);
                let name = match request.part_of {
                    Some(value) if value.is_aside => {
                        self.names.of_part(group, id, value.fingerprint)
                    }
                    _ => self.names.of_request_id(group, id),
                };
                place = self.place_of_others(vec![name]) + 1;
            }
            self.ids.push(place);
        }
    }

    /// Where these parts of a key are, counted from 1; 0 if there are none.
    fn add_parts(&mut self, parts: &[Part], policy: &Policy, key: &[u8]) -> usize {
        if parts.is_empty() {
            return 0;
        }
        let names = parts.iter().map(|part| self.names.of(part, policy.name(), key)).collect();
        self.place_of_others(names) + 1
    }

    /// Where these keys stand one after the other; they are added if they do not.
    fn place_of_others(&mut self, names: Vec<Vec<u8>>) -> usize {
        let keys = &mut self.call.keys;
        let known = names.first().and_then(|name| self.others.get(name)).copied();
        let stand_at = |n: &usize| keys.get(*n..).is_some_and(|key| key.starts_with(&names));
        if let Some(place) = known.filter(stand_at) {
            return place;
        }
        let place = keys.len();
        self.others.extend(names.iter().cloned().zip(place..));
        keys.extend(names);
        place
    }

    fn put_request(&mut self, index: usize, request: &'a Asked) {
        let verb = if request.inspects { INSPECT } else { number_of(&request.verb) };
        let named = if self.ids[index] > 0 { NAMED } else { 0 };
        let slots = std::mem::take(&mut self.call.slots[index]);
        self.requests.extend([verb + named, u8::try_from(slots.len()).unwrap_or(u8::MAX)]);
        for slot in &slots {
            self.put_u16(slot.argument);
            self.put_u16(slot.place + 1);
            self.put_u16(slot.own);
            put_number(&mut self.requests, slot.cost);
        }
        let out = &mut self.requests;
        match request.verb {
            Operation::Reserve { id, max_wait } => {
                put_id(out, id);
                put_number(out, max_wait.get().min(MAX_COST));
            }
            Operation::Check { lease: Some(id) }
            | Operation::Acquire { lease: id }
            | Operation::Cancel { id }
            | Operation::Renew { lease: id }
            | Operation::Release { lease: id } => put_id(out, id),
            Operation::Refund { time } => {
                put_number(out, time.map_or(0, |time| time.as_micros() + 1))
            }
            Operation::Block { span } => {
                put_number(out, span.map_or(0, |span| span.get().min(MAX_COST - 1) + 1));
            }
            _ => {}
        }
        if named > 0 {
            self.put_u16(self.ids[index]);
            let whole = request.part_of.map_or_else(|| fingerprint(request), |x| x.fingerprint);
            self.requests.extend(whole.to_be_bytes());
            put_number(&mut self.requests, self.horizon.get().min(MAX_COST));
        }
        self.call.slots[index] = slots;
    }

    /// The encoding of a policy, and its index among the arguments, counted from 1.
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
        self.requests.extend(u16::try_from(number).unwrap_or(u16::MAX).to_le_bytes());
    }

    fn finish(mut self, now: Option<Injected>) -> Call {
        let now = now.map_or(Vec::new(), |now| now.to_string().into_bytes());
        let checked = self.call.checked.len().to_string().into_bytes();
        self.call.args = vec![now, self.requests, checked];
        let arguments = self.arguments.iter().map(|encoding| encoding.argument().to_vec());
        self.call.args.extend(arguments);
        self.call
    }
}

/// What still fits 7 bytes, and is above every capacity.
const MAX_COST: u64 = (1 << 53) - 1;

fn number_of(verb: &Operation) -> u8 {
    match verb {
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
        // A verb that this version does not know is looked at and changes nothing.
        _ => 1,
    }
}

fn put_id(out: &mut Vec<u8>, id: Id) {
    out.extend(id.as_u128().to_be_bytes());
}

/// What was asked, as one number: equal for the same verb, policies, keys and costs. Ids of leases
/// and reservations are drawn anew for a repeat that brings none, so they are not part of it.
pub(crate) fn fingerprint(request: &Asked) -> u128 {
    let mut text = Vec::new();
    text.extend(request.verb.as_str().as_bytes());
    match request.verb {
        Operation::Reserve { max_wait, .. } => put_number(&mut text, max_wait.get()),
        Operation::Refund { time } => {
            put_number(&mut text, time.map_or(0, |time| time.as_micros() + 1))
        }
        Operation::Block { span } => {
            put_number(&mut text, span.map_or(0, |span| span.get().min(MAX_COST) + 1))
        }
        Operation::Cancel { id }
        | Operation::Renew { lease: id }
        | Operation::Release { lease: id } => put_id(&mut text, id),
        _ => {}
    }
    for check in &request.checks {
        for part in [check.policy.name().as_bytes(), &check.key] {
            text.extend(u32::try_from(part.len()).unwrap_or(u32::MAX).to_le_bytes());
            text.extend(part);
        }
        put_number(&mut text, check.cost.get());
    }
    // Fowler, Noll and Vo's hash 1a, 128 bits.
    text.iter().fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d, |hash, byte| {
        (hash ^ u128::from(*byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b)
    })
}
