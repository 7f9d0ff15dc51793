//! The messages of assignments, as Envoy 1.40.0 and clients of gRPC's proposal A77 understand them.

use envoy_types::pb::envoy::service::rate_limit_quota::v3::BucketId as BucketIdMessage;
use envoy_types::pb::envoy::service::rate_limit_quota::v3::rate_limit_quota_response::BucketAction;
use envoy_types::pb::envoy::service::rate_limit_quota::v3::rate_limit_quota_response::bucket_action::{
    AbandonAction, BucketAction as Action, QuotaAssignmentAction,
};
use envoy_types::pb::envoy::r#type::v3::rate_limit_strategy::{BlanketRule, Strategy};
use envoy_types::pb::envoy::r#type::v3::{RateLimitStrategy, TokenBucket as TokenBucketMessage};
use envoy_types::pb::google::protobuf::{Duration, UInt32Value};

use super::bucket::BucketId;
use super::division::TTL;

/// A token bucket for a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TokenBucket {
    pub(super) max_tokens: u64,
    pub(super) tokens_per_fill: u64,
    pub(super) fill: u64,
    /// Whether the client has one with another fill interval, which Envoy replaces only by way of
    /// a denial.
    pub(super) replaces: bool,
}

/// The answer about a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    AllowAll,
    DenyAll,
    TokenBucket(TokenBucket),
    Abandon,
}

impl Answer {
    /// Adds the actions to a response.
    pub(super) fn add_to(self, actions: &mut Vec<BucketAction>, id: &BucketId) {
        let mut add = |action| {
            let id = BucketIdMessage { bucket: id.iter().cloned().collect() };
            actions.push(BucketAction { bucket_id: Some(id), bucket_action: Some(action) });
        };
        match self {
            Answer::AllowAll => add(assignment(blanket(BlanketRule::AllowAll))),
            Answer::DenyAll => add(assignment(blanket(BlanketRule::DenyAll))),
            Answer::Abandon => add(Action::AbandonAction(AbandonAction {})),
            Answer::TokenBucket(bucket) => {
                // Envoy compares only the nanoseconds of fill intervals, so that it ignores another
                // one; after a denial it does not.
                if bucket.replaces {
                    add(assignment(blanket(BlanketRule::DenyAll)));
                }
                add(assignment(token_bucket(bucket)));
            }
        }
    }
}

fn assignment(strategy: Strategy) -> Action {
    Action::QuotaAssignmentAction(QuotaAssignmentAction {
        // Without it, Envoy's assignment expires at once.
        assignment_time_to_live: Some(seconds(TTL.get() / 1_000_000)),
        rate_limit_strategy: Some(RateLimitStrategy { strategy: Some(strategy) }),
    })
}

fn blanket(rule: BlanketRule) -> Strategy {
    Strategy::BlanketRule(rule.into())
}

fn token_bucket(bucket: TokenBucket) -> Strategy {
    // The numbers of a division fit.
    let number = |number| u32::try_from(number).unwrap_or(u32::MAX);
    Strategy::TokenBucket(TokenBucketMessage {
        max_tokens: number(bucket.max_tokens),
        tokens_per_fill: Some(UInt32Value { value: number(bucket.tokens_per_fill) }),
        fill_interval: Some(seconds(bucket.fill)),
    })
}

fn seconds(seconds: u64) -> Duration {
    Duration { seconds: i64::try_from(seconds).unwrap_or(i64::MAX), nanos: 0 }
}
