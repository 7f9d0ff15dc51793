//! Counts of agreements and disagreements, and samples of the latter in the log.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use envoy_types::pb::envoy::extensions::common::ratelimit::v3::RateLimitDescriptor;
use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_response::{Code, DescriptorStatus};
use envoy_types::pb::envoy::service::ratelimit::v3::{RateLimitRequest, RateLimitResponse};
use tollgate::Timestamp;
use tollgate_engine::{ActiveConfig, Counter, LogThrottle};
use tonic::Status;

use crate::bounded;
use crate::descriptor::Descriptor;
use crate::stats::{bounded_name, read};

/// The name for a request as a whole, if the other service returns no status for each descriptor.
const WHOLE_REQUEST: &str = "_request";
/// The name for descriptors without a limit.
const NO_LIMIT: &str = "_none";

/// The counts of a policy.
#[derive(Debug, Default)]
struct PolicyCounts {
    same: Counter,
    only_other_denied: Counter,
    only_tollgate_denied: Counter,
    samples: LogThrottle,
}

#[derive(Debug, Default)]
pub(super) struct Counts {
    same: Counter,
    different: Counter,
    other_failed: Counter,
    tollgate_failed: Counter,
    failures_of_other: LogThrottle,
    own_failures: LogThrottle,
    policies: RwLock<HashMap<Box<str>, Arc<PolicyCounts>>>,
}

/// Requests by the result of their comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ComparedRequests {
    /// Both services have the same code for every descriptor.
    pub same: u64,
    /// The codes of at least one descriptor differ.
    pub different: u64,
    /// The other service failed, so that the client got its failure, or the client did not wait for it.
    pub other_failed: u64,
    /// The other service answered, and Tollgate failed.
    pub tollgate_failed: u64,
}

/// The compared descriptors of a policy or rule.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ComparedPolicy {
    /// The name.
    pub name: String,
    /// Descriptors with the same code.
    pub same: u64,
    /// Descriptors that only the other service denied.
    pub only_other_denied: u64,
    /// Descriptors that only Tollgate denied.
    pub only_tollgate_denied: u64,
}

/// Both answers to a request, and the limits of its descriptors.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sides<'a> {
    pub(super) descriptors: &'a [Descriptor<'a>],
    pub(super) other: &'a RateLimitResponse,
    pub(super) own: &'a RateLimitResponse,
}

impl Counts {
    /// Counts a request that the other service did not answer.
    pub(super) fn count_failure_of_other(&self, now: Timestamp, error: &Status) {
        self.other_failed.increment();
        if let Some((requests, all)) = self.failures_of_other.count(now) {
            let error = bounded(error.message());
            tracing::warn!(
                error,
                requests,
                all,
                "not compared: the compared service did not answer"
            );
        }
    }

    /// Counts a request that only the other service answered.
    pub(super) fn count_own_failure(&self, now: Timestamp, error: &Status) {
        self.tollgate_failed.increment();
        if let Some((requests, all)) = self.own_failures.count(now) {
            let error = bounded(error.message());
            tracing::warn!(error, requests, all, "not compared: Tollgate made no decision");
        }
    }

    /// Counts the answers to a request.
    pub(super) fn compare(
        &self,
        active: &ActiveConfig,
        now: Timestamp,
        request: &RateLimitRequest,
        sides: Sides<'_>,
    ) {
        let Sides { descriptors, other, own } = sides;
        let domain = bounded(&request.domain);
        let mut is_same = true;
        if other.statuses.len() == own.statuses.len() {
            let statuses = other.statuses.iter().zip(&own.statuses);
            let descriptors = request.descriptors.iter().zip(descriptors);
            for ((other, own), (descriptor, limit)) in statuses.zip(descriptors) {
                let denials = [is_denial(other.code), is_denial(own.code)];
                let name = limit.target.counted_name();
                let name = if name.is_empty() { NO_LIMIT } else { name };
                if let Some((disagreements, all)) = self.count(name, denials, now) {
                    let policy = bounded(name);
                    let descriptor = shown(active, descriptor);
                    let (other, tollgate) = (status(other), status(own));
                    tracing::warn!(
                        policy,
                        domain,
                        descriptor,
                        other,
                        tollgate,
                        disagreements,
                        all,
                        "the compared service decided differently"
                    );
                }
                is_same &= denials[0] == denials[1];
            }
        } else {
            let denials = [is_denial(other.overall_code), is_denial(own.overall_code)];
            if let Some((disagreements, all)) = self.count(WHOLE_REQUEST, denials, now) {
                let [other_denied, tollgate_denied] = denials;
                tracing::warn!(
                    domain,
                    other_denied,
                    tollgate_denied,
                    disagreements,
                    all,
                    "the compared service decided differently"
                );
            }
            is_same = denials[0] == denials[1];
        }
        if is_same { self.same.increment() } else { self.different.increment() }
    }

    /// Counts the denials by the other service and by Tollgate. Returns the disagreements since the last
    /// line and in total if a sample is due.
    fn count(&self, name: &str, denials: [bool; 2], now: Timestamp) -> Option<(u64, u64)> {
        let counts = self.policy(name);
        match denials {
            [true, false] => counts.only_other_denied.increment(),
            [false, true] => counts.only_tollgate_denied.increment(),
            _ => {
                counts.same.increment();
                return None;
            }
        }
        counts.samples.count(now)
    }

    fn policy(&self, name: &str) -> Arc<PolicyCounts> {
        let known = read(&self.policies).get(name).cloned();
        known.unwrap_or_else(|| {
            let mut all = self.policies.write().unwrap_or_else(PoisonError::into_inner);
            // Clients choose the values that the names of rules may contain.
            let name = if all.contains_key(name) { name } else { bounded_name(all.len(), name) };
            Arc::clone(all.entry(name.into()).or_default())
        })
    }

    pub(super) fn requests(&self) -> ComparedRequests {
        ComparedRequests {
            same: self.same.get(),
            different: self.different.get(),
            other_failed: self.other_failed.get(),
            tollgate_failed: self.tollgate_failed.get(),
        }
    }

    pub(super) fn policies(&self) -> Vec<ComparedPolicy> {
        let policies = read(&self.policies);
        let counts = policies.iter().map(|(name, counts)| ComparedPolicy {
            name: name.to_string(),
            same: counts.same.get(),
            only_other_denied: counts.only_other_denied.get(),
            only_tollgate_denied: counts.only_tollgate_denied.get(),
        });
        let mut counts: Vec<_> = counts.collect();
        counts.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        counts
    }
}

fn is_denial(code: i32) -> bool {
    code == i32::from(Code::OverLimit)
}

/// The beginning of a descriptor, with its values as keys are shown.
fn shown(active: &ActiveConfig, descriptor: &RateLimitDescriptor) -> String {
    let entries = descriptor.entries.iter();
    let entries = entries
        .map(|entry| format!("{}={}", entry.key, active.display_key(entry.value.as_bytes())));
    bounded(&entries.collect::<Vec<_>>().join(","))
}

/// A status in a few words: `denied, 0 of 10 left`.
fn status(status: &DescriptorStatus) -> String {
    let decision = if is_denial(status.code) { "denied" } else { "allowed" };
    let remaining = status.limit_remaining;
    match &status.current_limit {
        Some(limit) => format!("{decision}, {remaining} of {} left", limit.requests_per_unit),
        None => format!("{decision}, no limit"),
    }
}
