//! Finds the lowest limits that deny at most a given share of the keys.

use tollgate::{Kind, Limit, Policy, Spec};
use tollgate_algorithms::KeyState;

use super::partition::{Partition, admits};
use crate::convert::{index, to_u64};
use crate::report::Suggestion;
use crate::threads::for_each;

/// The times and costs of one key's requests, in order.
pub(crate) type KeyTrace = Vec<(u64, u64)>;

/// Finds the lowest count of the first limit, with the other numbers in proportion, that denies at
/// most `share_ppm` millionths of the keys at least once.
///
/// Binary search. A key that a count never denies is not denied by a higher count, and a key that
/// it denies is denied by every lower count, so each step needs to replay only some of the keys.
pub(crate) fn suggest(
    policy: &Policy,
    keys: &[KeyTrace],
    share_ppm: u32,
    threads: usize,
) -> Option<Suggestion> {
    if keys.is_empty() {
        return None;
    }
    let first = policy.limits().first()?.spec().count;
    let total = to_u64(keys.len());
    let tolerated = u128::from(total) * u128::from(share_ppm) / 1_000_000;
    let tolerated = u64::try_from(tolerated).ok()?;

    let mut remaining: Vec<&KeyTrace> = keys.iter().collect();
    // The number of keys that every remaining count denies.
    let mut always_denied = 0;
    // `below` denies too many keys or is 0; `above` is the lowest count so far that does not.
    let (mut below, mut above) = (0, None);
    let mut count = first;
    loop {
        match scaled(policy, count) {
            // A count out of range ends the search upwards, and counts as too low downwards.
            None => {
                above?;
                below = count;
            }
            Some(limits) => {
                let (denied, admitted) = split(&remaining, &limits, threads);
                let total_denied = always_denied + to_u64(denied.len());
                if total_denied > tolerated {
                    below = count;
                    // A key that this count admits is admitted by every higher count.
                    remaining = denied;
                } else {
                    above = Some(count);
                    always_denied = total_denied;
                    remaining = admitted;
                }
            }
        }
        match next(below, above) {
            Some(value) => count = value,
            None => break,
        }
    }
    let suggested = scaled(policy, above?)?;
    // A final pass over all keys, in case a limit is not monotonic.
    let (denied, _) = split(&keys.iter().collect::<Vec<_>>(), &suggested, threads);
    let keys_denied = to_u64(denied.len());
    Some(Suggestion { share_ppm, limits: suggested.limits().to_vec(), keys_denied })
}

/// The next count to try; `None` if the lowest is found.
fn next(below: u64, above: Option<u64>) -> Option<u64> {
    match above {
        None => below.checked_mul(2),
        Some(above) if above - below > 1 => Some(below + (above - below) / 2),
        Some(_) => None,
    }
}

/// Splits keys into those that a policy denies at least once, and the others.
fn split<'a>(
    keys: &[&'a KeyTrace],
    policy: &Policy,
    threads: usize,
) -> (Vec<&'a KeyTrace>, Vec<&'a KeyTrace>) {
    let size = keys.len().div_ceil(threads).max(1);
    let mut parts: Vec<_> =
        keys.chunks(size).map(|chunk| (chunk, Vec::new(), Vec::new())).collect();
    for_each(&mut parts, |(keys, denied, admitted)| {
        for key in *keys {
            let into = if admits_all(policy, key) { &mut *admitted } else { &mut *denied };
            into.push(*key);
        }
    });
    let (mut denied, mut admitted) = (Vec::new(), Vec::new());
    for (_, more_denied, more_admitted) in parts {
        denied.extend(more_denied);
        admitted.extend(more_admitted);
    }
    (denied, admitted)
}

fn admits_all(policy: &Policy, key: &KeyTrace) -> bool {
    let mut state = KeyState::default();
    key.iter().all(|&(at, cost)| admits(policy, &mut state, cost, at))
}

/// Takes the requests of each key out of a partition.
pub(crate) fn take_traces(partition: &mut Partition) -> Vec<KeyTrace> {
    let mut keys = vec![KeyTrace::new(); partition.tallies.len()];
    for (at, key, cost) in partition.trace.take().into_iter().flatten() {
        keys[index(key)].push((at, cost));
    }
    keys.retain(|key| !key.is_empty());
    keys
}

/// The policy with this count in the first limit and all numbers in proportion, rounded up; `None`
/// if that is out of range.
fn scaled(policy: &Policy, count: u64) -> Option<Policy> {
    let first = policy.limits().first()?.spec().count;
    let scale = |number: u64| {
        let scaled = (u128::from(number) * u128::from(count)).div_ceil(u128::from(first));
        u64::try_from(scaled).ok()
    };
    let scaled = |limit: &Limit| {
        let spec = limit.spec();
        let kind = match spec.kind {
            Kind::TokenBucket { burst } => Kind::TokenBucket { burst: scale(burst)? },
            Kind::Queue { places } => Kind::Queue { places: scale(places)? },
            other => other,
        };
        Spec { count: scale(spec.count)?, kind, ..*spec }.build().ok()
    };
    let limits: Option<Vec<Limit>> = policy.limits().iter().map(scaled).collect();
    Policy::new("suggested", limits?).ok()
}
