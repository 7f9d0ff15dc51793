//! The share of each limit that this process may admit while the store is unavailable.
//!
//! The rate of a token bucket or a queue is divided exactly: `10/s` among four processes is `10/4s`.
//! Capacities and counts are whole numbers, so the remainder of the division goes to as many processes,
//! which the key determines. The shares of all processes add up to the limit.

use std::collections::HashMap;
use std::hash::Hasher;
use std::sync::{Arc, Mutex, PoisonError};

use fnv::FnvHasher;
use tollgate_algorithms::{Kind, Limit, Micros, Policy, PolicyIdentity, Spec};

use super::membership::Members;

/// The maximum number of policies kept.
const MAX_POLICIES: usize = 4_096;

/// The shares of policies that were needed recently.
#[derive(Debug, Default)]
pub(super) struct Shares(Mutex<HashMap<ShareKey, Share>>);

/// A process's share of a policy for a key.
#[derive(Clone, Debug)]
pub(super) struct Share {
    /// The policy with the shares of its limits.
    pub(super) policy: Policy,
    /// For each limit of the whole policy, the index of its share: limits whose shares are equal have
    /// one, and the shares may be in another order.
    indices: Arc<[usize]>,
}

impl Share {
    fn new(policy: Policy, limits: &[Limit]) -> Share {
        #[expect(clippy::expect_used, reason = "a policy has all limits that it is given")]
        let index = |limit| {
            policy.limits().iter().position(|share| share == limit).expect("the share of a limit")
        };
        let indices = limits.iter().map(index).collect();
        Share { policy, indices }
    }

    /// Returns the index of the share of a limit of the whole policy; `None` if that policy had fewer
    /// limits.
    pub(super) fn index(&self, limit: usize) -> Option<usize> {
        self.indices.get(limit).copied()
    }
}

/// What determines a share: the policy, the number of members and the share of each capacity.
#[derive(Debug, PartialEq, Eq, Hash)]
struct ShareKey {
    policy: PolicyIdentity,
    members: u64,
    capacities: Box<[u64]>,
}

impl Shares {
    /// Returns this process's share of the limits for a key; `None` if that of one of them is zero.
    pub(super) fn get(&self, policy: &Policy, key: &[u8], members: &Members) -> Option<Share> {
        #[expect(clippy::expect_used, reason = "no platform has wider pointers")]
        let count = u64::try_from(members.all.len()).expect("usize fits u64");
        if count == 1 {
            return Some(Share::new(without_ban(policy), policy.limits()));
        }
        let rank = rank(key, members);
        let share = |limit: &Limit| {
            let capacity = limit.capacity();
            capacity / count + u64::from(rank < capacity % count)
        };
        let capacities: Box<[u64]> = policy.limits().iter().map(share).collect();
        if capacities.contains(&0) {
            return None;
        }
        let share_key = ShareKey { policy: policy.identity(), members: count, capacities };
        let mut shares = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(share) = shares.get(&share_key) {
            return Some(share.clone());
        }
        let limits = policy.limits().iter().zip(&share_key.capacities);
        let limits: Option<Vec<Limit>> =
            limits.map(|(limit, capacity)| divide(limit, *capacity, count)).collect();
        let limits = limits?;
        let share = Share::new(without_ban(policy).with_limits(limits.clone()).ok()?, &limits);
        if shares.len() >= MAX_POLICIES {
            shares.retain(|key, _| key.policy.is_alive());
            if shares.len() >= MAX_POLICIES {
                shares.clear();
            }
        }
        shares.insert(share_key, share.clone());
        Some(share)
    }
}

/// Removes the ban: denials during an outage are not reported to the store afterwards.
fn without_ban(policy: &Policy) -> Policy {
    let policy = policy.clone();
    if policy.ban().is_some() { policy.with_ban(None) } else { policy }
}

/// Returns the number of members that get a unit of the remainder before this process. The order
/// depends on the key, and that of two members not on the others: a process that does not know of a
/// new member yet has no smaller share than one that does.
fn rank(key: &[u8], members: &Members) -> u64 {
    let order = |member: &tollgate_algorithms::Id| {
        let mut hasher = FnvHasher::default();
        hasher.write(&member.as_u128().to_be_bytes());
        hasher.write(key);
        let hash = hasher.finish();
        // The last bytes reach only some bits of FNV-1a.
        ((hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd), *member)
    };
    let own = order(&members.own);
    let before = members.all.iter().filter(|member| order(member) < own);
    before.fold(0, |count, _| count + 1)
}

/// Returns the share of a limit that has this share of its capacity.
fn divide(limit: &Limit, capacity: u64, members: u64) -> Option<Limit> {
    let spec = *limit.spec();
    let kind = match spec.kind {
        Kind::TokenBucket { .. } => Kind::TokenBucket { burst: capacity },
        Kind::Queue { .. } => Kind::Queue { places: capacity.checked_sub(1)? },
        kind => return Spec { count: capacity, kind, ..spec }.build().ok(),
    };
    let divisor = greatest_common_divisor(spec.count, members);
    let slower = Spec {
        count: spec.count / divisor,
        window: Micros::new(spec.window.get().checked_mul(members / divisor)?),
        kind,
        ..spec
    };
    // A window that is too long for exact arithmetic loses less than a request per window.
    slower.build().or_else(|_| Spec { count: spec.count / members, kind, ..spec }.build()).ok()
}

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tollgate_algorithms::Id;

    use super::*;

    fn members(ids: &[u128], own: u128) -> Members {
        let mut all: Vec<_> = ids.iter().copied().map(Id::from_u128).collect();
        all.sort_unstable();
        Members { own: Id::from_u128(own), all: all.into() }
    }

    /// The shares of the only limit of a policy, in the order of the members' ids.
    fn shares(limit: &str, key: &[u8], ids: &[u128]) -> Vec<String> {
        let policy: Policy = limit.parse().unwrap();
        let share = |own: &u128| Shares::default().get(&policy, key, &members(ids, *own));
        ids.iter()
            .map(share)
            .map(|share| share.map_or("-".into(), |share| share.policy.to_string()))
            .collect()
    }

    #[test]
    fn limits_are_divided_by_their_algorithm() {
        let four = [1, 2, 3, 4];
        for (limit, expected) in [
            ("8/s burst 20", "2/s burst 5"),
            ("1/s burst 4", "1/4s"),
            ("6/s burst 8", "3/2s burst 2"),
            ("8/min fixed", "2/min fixed"),
            ("8/min fixed from-first", "2/min fixed from-first"),
            ("8/min log", "2/min log"),
            ("8/min sliding", "2/min sliding"),
            ("8/min sliding by 1s", "2/min sliding by 1s"),
            ("8/s queue 7", "2/s queue 1"),
            ("8 concurrent lease 60s", "2 concurrent lease 1min"),
            ("8/min log count-denied", "2/min log count-denied"),
        ] {
            assert_eq!(shares(limit, b"k", &four), [expected; 4], "{limit}");
        }
        let mut few = shares("2/d fixed", b"k", &four);
        few.sort();
        assert_eq!(few, ["-", "-", "1/d fixed", "1/d fixed"]);
        assert_eq!(shares("2/d fixed", b"k", &[7]), ["2/d fixed"]);
    }

    #[test]
    fn a_policy_has_no_share_if_one_of_its_limits_has_none() {
        let ids = [1, 2, 3];
        let both = shares("300/min fixed; 1/s fixed", b"k", &ids);
        assert_eq!(both.iter().filter(|share| *share == "-").count(), 2, "{both:?}");
    }

    #[test]
    fn the_remainder_goes_to_other_processes_for_other_keys() {
        let ids = [1, 2, 3, 4, 5];
        let mut holders = HashMap::<usize, u32>::new();
        for key in 0..1_000_u32 {
            let shares = shares("1/d fixed", &key.to_be_bytes(), &ids);
            *holders.entry(shares.iter().position(|share| share != "-").unwrap()).or_default() += 1;
        }
        assert!(
            ids.len() == holders.len() && holders.values().all(|keys| *keys > 100),
            "{holders:?}"
        );
    }

    proptest! {
        #[test]
        fn shares_add_up_to_the_limit_and_never_grow_with_more_members(
            count in 1_u64..1_000, key in any::<u64>(),
            ids in prop::collection::hash_set(any::<u128>(), 1..40), new in any::<u128>(),
        ) {
            let policy = Policy::new("p", [format!("{count}/d fixed").parse().unwrap()]).unwrap();
            let ids: Vec<u128> = ids.into_iter().filter(|id| *id != new).collect();
            prop_assume!(!ids.is_empty());
            let more: Vec<u128> = ids.iter().copied().chain([new]).collect();
            let share = |ids: &[u128], own: u128| {
                let share = Shares::default().get(&policy, &key.to_be_bytes(), &members(ids, own));
                share.map_or(0, |share| share.policy.limits()[0].capacity())
            };
            let sum = |ids: &[u128]| ids.iter().map(|own| share(ids, *own)).sum::<u64>();
            prop_assert_eq!(sum(&ids), count);
            prop_assert_eq!(sum(&more), count);
            for own in &ids {
                prop_assert!(share(&more, *own) <= share(&ids, *own));
            }
        }

        #[test]
        fn rates_add_up_to_the_limit_at_most(
            count in 1_u64..100_000, window_s in 1_u64..90_000, burst in 50_u64..1_000, members in 2_u64..50,
        ) {
            let spec = Spec::new(count, Micros::from_secs(window_s), Kind::TokenBucket { burst });
            let Ok(limit) = spec.build() else { return Ok(()) };
            let Some(share) = divide(&limit, burst / members, members) else { return Ok(()) };
            let (share, whole) = (share.spec(), limit.spec());
            let all = u128::from(share.count) * u128::from(members) * u128::from(whole.window.get());
            prop_assert!(all <= u128::from(whole.count) * u128::from(share.window.get()));
        }
    }
}
