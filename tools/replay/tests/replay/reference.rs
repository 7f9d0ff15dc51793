//! The reference: a limiter that is called line by line.

use std::collections::BTreeMap;

use tollgate::{Cost, Key, ManualClock, MemoryLimiter, Micros, Policy, Timestamp};
use tollgate_replay::report::{Amount, Denial};

use crate::harness::Request;

/// The outcome of one candidate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reference {
    pub(crate) admitted: Amount,
    pub(crate) denied: Amount,
    /// The denied keys with their total, their denied amount, their first and their longest denial.
    pub(crate) keys: BTreeMap<String, (Amount, Amount, Timestamp, Micros)>,
    pub(crate) longest: Option<Denial>,
    /// Each decision.
    pub(crate) decisions: Vec<(Timestamp, bool, u64)>,
}

fn add(amount: &mut Amount, cost: u64) {
    amount.requests += 1;
    amount.cost += cost;
}

/// Calls a limiter with each request, in the order of time.
pub(crate) fn reference(limits: &str, requests: &[Request]) -> Reference {
    let (clock, policy) = (ManualClock::default(), limits.parse::<Policy>().unwrap());
    let limiter = MemoryLimiter::builder().clock(clock.clone()).build();
    let mut sorted = requests.to_vec();
    sorted.sort_by_key(|request| request.at);
    let mut reference = Reference::default();
    let mut answers: BTreeMap<String, Vec<(u64, bool, u64)>> = BTreeMap::new();
    for Request { at, key, cost } in &sorted {
        clock.set(Timestamp::from_micros(*at));
        let checked_key = Key::new(key.as_bytes()).unwrap();
        let allowed = limiter.check_cost(&policy, checked_key, Cost::new(*cost).unwrap()).allowed;
        add(if allowed { &mut reference.admitted } else { &mut reference.denied }, *cost);
        answers.entry(key.clone()).or_default().push((*at, allowed, *cost));
        reference.decisions.push((Timestamp::from_micros(*at), allowed, *cost));
    }
    for (key, answers) in answers {
        let (mut offered, mut denied) = (Amount::default(), Amount::default());
        answers.iter().for_each(|answer| add(&mut offered, answer.2));
        answers.iter().filter(|answer| !answer.1).for_each(|answer| add(&mut denied, answer.2));
        let Some(first) = answers.iter().find(|answer| !answer.1) else { continue };
        let mut longest = (first.0, 0);
        for (place, (start, allowed, _)) in answers.iter().enumerate() {
            let before = place.checked_sub(1).map(|before| answers[before].1);
            if *allowed || before == Some(false) {
                continue;
            }
            let rest = &answers[place..];
            let end = rest.iter().find(|answer| answer.1).or(rest.last()).unwrap().0;
            if end - start > longest.1 {
                longest = (*start, end - start);
            }
        }
        let (start, length) = (Timestamp::from_micros(longest.0), Micros::new(longest.1));
        if reference.longest.as_ref().is_none_or(|longest| longest.length < length) {
            reference.longest = Some(Denial { key: key.clone().into_bytes(), start, length });
        }
        let first = Timestamp::from_micros(first.0);
        reference.keys.insert(key, (offered, denied, first, length));
    }
    reference
}

/// The number of keys with each peak in windows of the clock of this many seconds.
pub(crate) fn peaks(seconds: u64, requests: &[Request]) -> Vec<(u64, u64)> {
    let mut windows: BTreeMap<(&str, u64), u64> = BTreeMap::new();
    for request in requests {
        *windows.entry((&request.key, request.at / 1_000_000 / seconds)).or_default() +=
            request.cost;
    }
    let mut peaks: BTreeMap<&str, u64> = BTreeMap::new();
    for ((key, _), cost) in windows {
        let peak = peaks.entry(key).or_default();
        *peak = (*peak).max(cost);
    }
    let mut by_cost: BTreeMap<u64, u64> = BTreeMap::new();
    peaks.values().for_each(|value| *by_cost.entry(*value).or_default() += 1);
    by_cost.into_iter().collect()
}
