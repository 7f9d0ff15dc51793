//! The same, found line by line.

use std::collections::BTreeMap;

use tollgate::{Cost, Key, ManualClock, MemoryLimiter, Micros, Policy, Timestamp};
use tollgate_replay::report::{Amount, Denial};

use crate::asking::Request;

/// What one alternative did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Plain {
    pub(crate) admitted: Amount,
    pub(crate) denied: Amount,
    /// The keys that were denied: what they asked, what was denied of it, when first, and how long at
    /// most.
    pub(crate) keys: BTreeMap<String, (Amount, Amount, Timestamp, Micros)>,
    pub(crate) longest: Option<Denial>,
    /// Each decision.
    pub(crate) decisions: Vec<(Timestamp, bool, u64)>,
}

fn add(amount: &mut Amount, cost: u64) {
    amount.requests += 1;
    amount.cost += cost;
}

/// Asks a limiter request after request, in the order of their time.
pub(crate) fn plain(limits: &str, requests: &[Request]) -> Plain {
    let (clock, policy) = (ManualClock::default(), limits.parse::<Policy>().unwrap());
    let limiter = MemoryLimiter::builder().clock(clock.clone()).build();
    let mut sorted = requests.to_vec();
    sorted.sort_by_key(|x| x.at);
    let mut plain = Plain::default();
    let mut answers: BTreeMap<String, Vec<(u64, bool, u64)>> = BTreeMap::new();
    for Request { at, key, cost } in &sorted {
        clock.set(Timestamp::from_micros(*at));
        let key_of = Key::new(key.as_bytes()).unwrap();
        let allowed = limiter.check_cost(&policy, key_of, Cost::new(*cost).unwrap()).allowed();
        add(if allowed { &mut plain.admitted } else { &mut plain.denied }, *cost);
        answers.entry(key.clone()).or_default().push((*at, allowed, *cost));
        plain.decisions.push((Timestamp::from_micros(*at), allowed, *cost));
    }
    for (key, answers) in answers {
        let (mut offered, mut denied) = (Amount::default(), Amount::default());
        answers.iter().for_each(|answer| add(&mut offered, answer.2));
        answers.iter().filter(|answer| !answer.1).for_each(|answer| add(&mut denied, answer.2));
        let Some(first) = answers.iter().find(|answer| !answer.1) else { continue };
        let mut longest = (first.0, 0);
        for (place, (start, allowed, _)) in answers.iter().enumerate() {
            let before = place.checked_sub(1).map(|x| answers[x].1);
            if *allowed || before == Some(false) {
                continue;
            }
            let rest = &answers[place..];
            let end = rest.iter().find(|x| x.1).or(rest.last()).unwrap().0;
            if end - start > longest.1 {
                longest = (*start, end - start);
            }
        }
        let (start, length) = (Timestamp::from_micros(longest.0), Micros::new(longest.1));
        if plain.longest.as_ref().is_none_or(|longest| longest.length < length) {
            plain.longest = Some(Denial { key: key.clone().into_bytes(), start, length });
        }
        let first = Timestamp::from_micros(first.0);
        plain.keys.insert(key, (offered, denied, first, length));
    }
    plain
}

/// The most of each key in any window of the clock of so many seconds, how many keys have each.
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
