//! The lowest numbers by which only so many keys would be denied.

use std::collections::BTreeMap;

use tollgate::{Kind, Limit, Policy, Spec};
use tollgate_core::KeyState;

use super::partition::{Partition, admits};
use crate::each;
use crate::report::Suggestion;

/// What one key asked, in order: when, and how much.
pub(crate) type Asked = Vec<(u64, u64)>;

/// Searches the lowest count of the first limit, the other numbers in proportion, by which at most
/// `share_ppm` millionths of the keys are denied at least once.
///
/// Halving: of the keys that a count denies none has to be asked about a lower count, and of those
/// it admits whole none about a higher one, so that all is decided about twice.
pub(crate) fn suggest(
    policy: &Policy,
    keys: &[Asked],
    share_ppm: u32,
    threads: usize,
) -> Option<Suggestion> {
    if keys.is_empty() {
        return None;
    }
    let first = policy.limits().first()?.spec().count;
    let total = u64::try_from(keys.len()).ok()?;
    let tolerated = u128::from(total) * u128::from(share_ppm) / 1_000_000;
    let tolerated = u64::try_from(tolerated).ok()?;

    let mut scaled = Scaled { policy, first, known: BTreeMap::new() };
    let mut open: Vec<&Asked> = keys.iter().collect();
    // How many keys are denied by whatever is still looked at.
    let mut surely = 0;
    // Below: denies too many, or nothing. Above: the lowest so far that does not.
    let (mut below, mut above) = (0, None);
    let mut count = first;
    loop {
        match scaled.at(count) {
            // What does not fit ends the way up, and on the way down is as if it denied too many.
            None => {
                above?;
                below = count;
            }
            Some(limits) => {
                let (denied, admitted) = split(&open, &limits, threads);
                let many = surely + u64::try_from(denied.len()).ok()?;
                if many > tolerated {
                    below = count;
                    // Those admitted here are so by every higher count.
                    open = denied;
                } else {
                    above = Some(count);
                    surely = many;
                    open = admitted;
                }
            }
        }
        match next(below, above) {
            Some(value) => count = value,
            None => break,
        }
    }
    let suggested = scaled.at(above?)?;
    // Once more of all keys, so that what is said holds however a limit treats one number more.
    let (denied, _) = split(&keys.iter().collect::<Vec<_>>(), &suggested, threads);
    let keys_denied = u64::try_from(denied.len()).ok()?;
    Some(Suggestion { share_ppm, limits: suggested.limits().to_vec(), keys_denied })
}

/// Which count is looked at next; none if the lowest is found.
fn next(below: u64, above: Option<u64>) -> Option<u64> {
    match above {
        None => below.checked_mul(2),
        Some(above) if above - below > 1 => Some(below + (above - below) / 2),
        Some(_) => None,
    }
}

/// The keys that a policy denies at least once, and the others.
fn split<'a>(
    keys: &[&'a Asked],
    policy: &Policy,
    threads: usize,
) -> (Vec<&'a Asked>, Vec<&'a Asked>) {
    let size = keys.len().div_ceil(threads).max(1);
    let mut parts: Vec<_> =
        keys.chunks(size).map(|chunk| (chunk, Vec::new(), Vec::new())).collect();
    each(&mut parts, |(keys, denied, admitted)| {
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

fn admits_all(policy: &Policy, key: &Asked) -> bool {
    let mut state = KeyState::default();
    key.iter().all(|&(at, cost)| admits(policy, &mut state, cost, at))
}

/// What each key of a partition asked, which it keeps no longer.
pub(crate) fn asked_by_key(partition: &mut Partition) -> Vec<Asked> {
    let mut keys = vec![Asked::new(); partition.keys.len()];
    for (at, key, cost) in partition.trace.take().into_iter().flatten() {
        if let Some(asked) = usize::try_from(key).ok().and_then(|x| keys.get_mut(x)) {
            asked.push((at, cost));
        }
    }
    keys.retain(|key| !key.is_empty());
    keys
}

/// A policy with other counts.
struct Scaled<'a> {
    policy: &'a Policy,
    /// The count of its first limit.
    first: u64,
    known: BTreeMap<u64, Option<Policy>>,
}

impl Scaled<'_> {
    /// With this count in the first limit, and all numbers in proportion, rounded up; nothing if that
    /// does not fit.
    fn at(&mut self, count: u64) -> Option<Policy> {
        let (policy, first) = (self.policy, self.first);
        let make = || {
            let limits: Option<Vec<Limit>> =
                policy.limits().iter().map(|limit| scaled(limit.spec(), count, first)).collect();
            Policy::new("suggested", limits?).ok()
        };
        self.known.entry(count).or_insert_with(make).clone()
    }
}

fn scaled(spec: &Spec, count: u64, first: u64) -> Option<Limit> {
    let scale = |number: u64| {
        let scaled = (u128::from(number) * u128::from(count)).div_ceil(u128::from(first));
        u64::try_from(scaled).ok()
    };
    let kind = match spec.kind {
        Kind::TokenBucket { burst } => Kind::TokenBucket { burst: scale(burst)? },
        Kind::Queue { places } => Kind::Queue { places: scale(places)? },
        other => other,
    };
    Spec { count: scale(spec.count)?, kind, ..*spec }.build().ok()
}
