//! The buckets of one stream.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use envoy_types::pb::envoy::extensions::common::ratelimit::v3::RateLimitDescriptor;
use envoy_types::pb::envoy::extensions::common::ratelimit::v3::rate_limit_descriptor::Entry;
use envoy_types::pb::envoy::service::rate_limit_quota::v3::rate_limit_quota_usage_reports::BucketQuotaUsage;
use envoy_types::pb::envoy::service::rate_limit_quota::v3::{
    RateLimitQuotaResponse, RateLimitQuotaUsageReports,
};
use envoy_types::pb::envoy::service::ratelimit::v3::RateLimitRequest;
use hyper::header::HeaderMap;
use tollgate::{Micros, Timestamp};
use tollgate_engine::ActiveConfig;
use tollgate_http::RequestHead;
use tollgate_state::Clock;
use tonic::Status;

use super::assignment::Answer;
use super::bucket::{Bucket, BucketId, RENEWAL, RETRY};
use super::division::{Division, MAX_PREPARATION};
use super::round::{PendingBucket, prepare};
use crate::connection::Service;
use crate::descriptor::{Target, find_all};
use crate::error::EnvoyError;
use crate::{EnvoyContext, EnvoyState, bounded};

/// The most buckets of a stream; further ones are abandoned.
const MAX_BUCKETS: usize = 1_000;
/// The most pairs of a bucket's id, as in gRPC's proposal A77.
const MAX_PAIRS: usize = 30;
/// The most buckets in a response.
const MAX_ANSWERS: usize = 64;
/// A client that sends no report for this time gets no assignments: it may not receive them.
const MAX_SILENCE: Micros = Micros::from_secs(15);

/// The state of one stream.
#[derive(Debug)]
pub(super) struct Session {
    service: Service,
    headers: HeaderMap,
    clock: Clock,
    /// When earlier leases in this store have expired, also those that it has lost.
    ready: Timestamp,
    /// The configuration of the last round.
    active: Arc<ActiveConfig>,
    domain: String,
    reported: Timestamp,
    /// Whether it was counted as silent since.
    was_silent: bool,
    buckets: HashMap<BucketId, Bucket>,
    /// Buckets to abandon, and when the next of them are.
    rejected: Vec<BucketId>,
    rejection: Timestamp,
}

/// How a bucket is limited.
enum BucketLimit {
    /// It is divided, and has this key.
    Divided(Box<Division>, Vec<u8>),
    /// Each client gets the same answer.
    Answer(Answer),
    /// It has no answer, so that clients do what they do without one.
    Refused,
}

impl Session {
    /// The session of a new stream.
    pub(super) fn new(
        service: Service,
        headers: HeaderMap,
        clock: Clock,
        ready: Timestamp,
    ) -> Self {
        let (active, now) = (Arc::clone(&service.engine.active()), clock.now());
        Session {
            service,
            headers,
            clock,
            ready,
            active,
            domain: String::new(),
            reported: now,
            was_silent: false,
            buckets: HashMap::new(),
            rejected: Vec::new(),
            rejection: now,
        }
    }

    /// Notes the reports of a message.
    pub(super) fn receive(&mut self, message: RateLimitQuotaUsageReports) {
        let now = self.clock.now();
        (self.reported, self.was_silent) = (now, false);
        self.service.state.quota.reports.increment();
        // Envoy sends the domain in each message, others only in the first one.
        if !message.domain.is_empty() {
            self.domain = message.domain;
        }
        for usage in message.bucket_quota_usages {
            self.receive_usage(usage, now);
        }
    }

    fn receive_usage(&mut self, usage: BucketQuotaUsage, now: Timestamp) {
        // Without an id there is nothing to answer.
        let Some(id) = usage.bucket_id.filter(|id| !id.bucket.is_empty()) else { return };
        let mut id: BucketId = id.bucket.into_iter().collect();
        id.sort_unstable();
        let requests = usage.num_requests_allowed.saturating_add(usage.num_requests_denied);
        if let Some(bucket) = self.buckets.get_mut(&id) {
            bucket.report(requests, now);
            return;
        }
        let is_empty = id.iter().any(|(key, value)| key.is_empty() || value.is_empty());
        if is_empty || id.len() > MAX_PAIRS || self.buckets.len() >= MAX_BUCKETS {
            // A client may report more of them at once than a response may have.
            if self.rejected.len() < MAX_BUCKETS {
                self.rejected.push(id);
            }
            return;
        }
        // The first report of a new bucket follows its first request at once.
        let is_resumed = usage.time_elapsed.is_some_and(|elapsed| elapsed.seconds >= 1);
        self.buckets.insert(id, Bucket::new(now, is_resumed));
        self.service.state.quota.buckets.fetch_add(1, Ordering::Relaxed);
    }

    /// The time until the next response is due, if there will be one.
    pub(super) fn next_due(&self) -> Option<Micros> {
        let now = self.clock.now();
        if !Arc::ptr_eq(&self.active, &self.service.engine.active()) {
            return Some(Micros::ZERO);
        }
        let rejection = (!self.rejected.is_empty()).then_some(self.rejection);
        let due = self.buckets.values().map(|bucket| bucket.due).chain(rejection).min();
        due.map(|due| due.duration_since(now))
    }

    /// Returns whether the client has stopped reporting, and counts it the first time.
    fn check_silence(&mut self, now: Timestamp) -> bool {
        let is_silent = now.duration_since(self.reported) > MAX_SILENCE;
        if is_silent && !std::mem::replace(&mut self.was_silent, true) {
            self.service.state.quota.silent.increment();
        }
        is_silent
    }

    /// The response with the assignments that are due.
    ///
    /// # Errors
    /// The client's token is not valid, or not any more.
    pub(super) async fn respond(&mut self) -> Result<Option<RateLimitQuotaResponse>, Status> {
        let now = self.clock.now();
        let active = Arc::clone(&self.service.engine.active());
        if !Arc::ptr_eq(&self.active, &active) {
            self.active = Arc::clone(&active);
            self.buckets.values_mut().for_each(|bucket| bucket.due = now);
        }
        let is_silent = self.check_silence(now);
        let Service { engine, state, remote } = &self.service;
        let head = RequestHead::without_target(&self.headers);
        let context = EnvoyContext::authenticate(state, engine, &active, remote, head)
            .await
            .map_err(EnvoyError::from)?;
        let mut actions = Vec::new();
        if self.rejection <= now && !self.rejected.is_empty() {
            // A client reports an abandoned bucket again at its next request.
            self.rejection = now.saturating_add(RETRY);
            for id in self.rejected.drain(..self.rejected.len().min(MAX_ANSWERS)) {
                Answer::Abandon.add_to(&mut actions, &id);
            }
        }
        let due = self.buckets.iter_mut().filter(|(_, bucket)| bucket.due <= now);
        let (mut ids, mut entries, mut abandoned) = (Vec::new(), Vec::new(), Vec::new());
        for (id, bucket) in due.take(MAX_ANSWERS) {
            if is_silent {
                bucket.due = now.saturating_add(RETRY);
                continue;
            }
            bucket.due = now.saturating_add(RENEWAL);
            let limit = match bucket.is_idle(now) {
                true => BucketLimit::Answer(Answer::Abandon),
                false => find_limit(&context, &self.domain, id),
            };
            match limit {
                // What clients have from before is not known.
                BucketLimit::Divided(..) if now < self.ready => bucket.due = self.ready,
                BucketLimit::Divided(division, key) => {
                    ids.push(id);
                    entries.push(PendingBucket::new(bucket, *division, key));
                }
                BucketLimit::Refused => bucket.assignment = None,
                BucketLimit::Answer(answer) => {
                    bucket.assignment = None;
                    answer.add_to(&mut actions, id);
                    if answer == Answer::Abandon {
                        abandoned.push(id.clone());
                    }
                }
            }
        }
        let answers = prepare(&context.request, &mut entries, now).await;
        let is_late = self.clock.now().duration_since(now) > MAX_PREPARATION;
        for ((id, mut entry), answer) in ids.into_iter().zip(entries).zip(answers) {
            let answer = finish(state, &mut entry, answer, is_late);
            if answer.is_none() || entry.lacks() {
                entry.bucket.due = now.saturating_add(RETRY);
            }
            if let Some(answer) = answer {
                answer.add_to(&mut actions, id);
            }
        }
        for id in abandoned {
            self.buckets.remove(&id);
            self.service.state.quota.buckets.fetch_sub(1, Ordering::Relaxed);
        }
        if actions.is_empty() {
            return Ok(None);
        }
        self.service.state.quota.responses.increment();
        Ok(Some(RateLimitQuotaResponse { bucket_action: actions }))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let buckets = u64::try_from(self.buckets.len()).unwrap_or(u64::MAX);
        self.service.state.quota.buckets.fetch_sub(buckets, Ordering::Relaxed);
    }
}

/// The answer, unless it failed or was prepared too late.
fn finish(
    state: &EnvoyState,
    entry: &mut PendingBucket<'_>,
    answer: Option<Answer>,
    is_late: bool,
) -> Option<Answer> {
    if let Some(error) = &entry.error {
        state.quota.store_errors.increment();
        tracing::debug!(%error, "a quota was not assigned");
    } else if is_late {
        // The tokens that were taken may be lost, but are never assigned twice.
        entry.bucket.assignment = None;
        state.quota.late.increment();
        return None;
    }
    answer
}

/// Finds the limit of a bucket, as for a descriptor with its pairs.
fn find_limit(context: &EnvoyContext<'_>, domain: &str, id: &BucketId) -> BucketLimit {
    let entries = id.iter().map(|(key, value)| Entry { key: key.clone(), value: value.clone() });
    let descriptor =
        RateLimitDescriptor { entries: entries.collect(), ..RateLimitDescriptor::default() };
    let request = RateLimitRequest {
        domain: domain.to_owned(),
        descriptors: vec![descriptor],
        hits_addend: 0,
    };
    let found = match find_all(context, &request) {
        Ok(found) => found,
        Err(error) => {
            warn(context, domain, Status::from(error).message());
            return BucketLimit::Refused;
        }
    };
    let Some(descriptor) = found.first() else { return BucketLimit::Answer(Answer::AllowAll) };
    if matches!(descriptor.target, Target::UnknownDomain) {
        warn(
            context,
            domain,
            "no file of rules and no policy has the domain; all requests are admitted",
        );
    }
    if descriptor.target.is_shadow() || context.request.active.envoy.shadow {
        return BucketLimit::Answer(Answer::AllowAll);
    }
    if descriptor.target.is_always_over() {
        return BucketLimit::Answer(Answer::DenyAll);
    }
    let Some(policy) = descriptor.target.policy() else {
        return BucketLimit::Answer(Answer::AllowAll);
    };
    match Division::new(policy) {
        Ok(division) => {
            BucketLimit::Divided(Box::new(division), descriptor.target.key().as_bytes().to_vec())
        }
        Err(reason) => {
            let reason =
                format!("the limit of {:?} cannot be divided: {}", policy.name(), reason.as_str());
            warn(context, domain, &reason);
            BucketLimit::Refused
        }
    }
}

/// Logs why a bucket gets no quota, at most once per interval.
fn warn(context: &EnvoyContext<'_>, domain: &str, reason: &str) {
    let quota = &context.state.quota;
    quota.refused.increment();
    if let Some((buckets, _)) = quota.refusals.count(context.request.engine.clock().now()) {
        tracing::warn!(domain = bounded(domain), buckets, reason, "a bucket of RLQS gets no quota");
    }
}
