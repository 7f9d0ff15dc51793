//! Policies of rows.

use std::collections::BTreeMap;

use tollgate_algorithms::{Ban, Policy, parse_limits};

use super::spans::span;
use super::words::{Mistake, Words};

/// A policy, and the canonical index of each limit of its text.
#[derive(Clone, Debug)]
pub(super) struct PolicyLine {
    pub(super) policy: Policy,
    pub(super) places: Vec<usize>,
}

/// Policies by their name in the file.
pub(super) type Policies = BTreeMap<String, PolicyLine>;

/// `NAME [OPTION…] LIMITS`.
pub(super) fn define(mut words: Words<'_>, policies: &mut Policies) -> Result<(), Mistake> {
    let alias = words.need("the policy's name")?;
    let (mut name, mut shadow, mut log_entries) = (Some(alias.to_owned()), false, None);
    let mut ban = None;
    while let Some(word) =
        words.peek().filter(|word| !word.starts_with(|c: char| c.is_ascii_digit()))
    {
        words.next();
        match word.split_once('=').unwrap_or((word, "")) {
            ("shadow", "") => shadow = true,
            ("unnamed", "") => name = None,
            ("named", other) => name = Some(other.to_owned()),
            ("log-entries", count) => {
                log_entries = Some(count.parse().map_err(|_| "log-entries=N needs a number")?);
            }
            ("ban", numbers) => ban = Some(parse_ban(numbers)?),
            _ => return Err(format!("{word:?} is no option of a policy")),
        }
    }
    let mut policy = build(name.as_deref(), &words.rest())?;
    if shadow {
        policy.policy = policy.policy.shadow();
    }
    if let Some(most) = log_entries {
        policy.policy = policy.policy.with_log_entries(most);
    }
    policy.policy = policy.policy.with_ban(ban);
    policies.insert(alias.to_owned(), policy);
    Ok(())
}

/// `DENIALS/WITHIN/FOR`.
fn parse_ban(numbers: &str) -> Result<Ban, Mistake> {
    let mut parts = numbers.split('/');
    let (Some(denials), Some(within), Some(length), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err("ban=DENIALS/WITHIN/FOR needs three numbers".into());
    };
    let denials = denials.parse().map_err(|_| format!("{denials:?} is no number of denials"))?;
    Ban::new(denials, span(within)?, span(length)?).map_err(|error| error.to_string())
}

/// A policy of these limits, by name or as text.
pub(super) fn build(name: Option<&str>, text: &str) -> Result<PolicyLine, Mistake> {
    let limits = parse_limits(text).map_err(|error| error.to_string())?;
    let policy = match name {
        Some(name) => {
            Policy::new(name, limits.iter().copied()).map_err(|error| error.to_string())?
        }
        None => text.parse().map_err(|notation_error: tollgate_algorithms::NotationError| {
            notation_error.to_string()
        })?,
    };
    let place = |limit| policy.limits().iter().position(|l| l == limit);
    let places = limits.iter().filter_map(place).collect();
    Ok(PolicyLine { policy, places })
}
