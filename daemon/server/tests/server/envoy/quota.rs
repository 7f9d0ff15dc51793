//! Envoy's rate limit quota service: assignments over real streams.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use envoy_types::pb::envoy::service::rate_limit_quota::v3::rate_limit_quota_response::bucket_action::BucketAction;
use envoy_types::pb::envoy::service::rate_limit_quota::v3::rate_limit_quota_service_client::RateLimitQuotaServiceClient;
use envoy_types::pb::envoy::service::rate_limit_quota::v3::rate_limit_quota_usage_reports::BucketQuotaUsage;
use envoy_types::pb::envoy::service::rate_limit_quota::v3::{
    BucketId, RateLimitQuotaResponse, RateLimitQuotaUsageReports,
};
use envoy_types::pb::envoy::r#type::v3::rate_limit_strategy::Strategy;
use tokio::sync::mpsc;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tollgate_daemon::Config;
use tollgate_testkit::Server;
use tonic::{Code, Status, Streaming};

use super::client::channel;
use crate::http::access::token;
use crate::support::daemon::Daemon;

const POLICIES: &str = r#"
policies:
  api: { limits: ["1000/s burst 400"] }
  several: { limits: ["10/s", "100/min"] }
  ghost: { limits: ["1000/s"], shadow: true }
  listed: { limits: ["1000/s"], allow: ["user=*"] }
  blocked: { limits: ["1000/s"], deny: ["user=*"] }
"#;

/// A stream of one client.
struct Stream {
    reports: mpsc::UnboundedSender<RateLimitQuotaUsageReports>,
    responses: Streaming<RateLimitQuotaResponse>,
}

impl Stream {
    async fn open(daemon: &Daemon) -> Result<Self, Status> {
        let mut client = RateLimitQuotaServiceClient::new(channel(daemon.grpc).await);
        let (reports, receiver) = mpsc::unbounded_channel();
        let stream = UnboundedReceiverStream::new(receiver);
        let responses = client.stream_rate_limit_quotas(stream).await?.into_inner();
        Ok(Stream { reports, responses })
    }

    /// Opens a stream with a report.
    async fn open_with(daemon: &Daemon, domain: &str, buckets: &[&str]) -> Self {
        let stream = Stream::open(daemon).await.unwrap();
        stream.report(domain, buckets);
        stream
    }

    /// Checks that there is no response for this time.
    async fn assert_silent(&mut self, span: Duration) {
        let next = tokio::time::timeout(span, self.responses.message()).await;
        assert!(next.is_err(), "{next:?}");
    }

    /// Reports a request of each bucket, written `key=value,key=value`.
    fn report(&self, domain: &str, buckets: &[&str]) {
        let usages = buckets.iter().map(|pairs| BucketQuotaUsage {
            bucket_id: Some(BucketId { bucket: parse_pairs(pairs).into_iter().collect() }),
            time_elapsed: None,
            num_requests_allowed: 1,
            num_requests_denied: 0,
        });
        let bucket_quota_usages = usages.collect();
        let message = RateLimitQuotaUsageReports { domain: domain.to_owned(), bucket_quota_usages };
        self.reports.send(message).unwrap();
    }

    /// The next assignments, as text, by bucket.
    async fn next(&mut self) -> BTreeMap<String, String> {
        let response = tokio::time::timeout(Duration::from_secs(20), self.responses.message());
        let response = response.await.unwrap().unwrap().unwrap();
        let actions = response.bucket_action.into_iter();
        actions
            .map(|action| {
                (format_id(&action.bucket_id.unwrap()), format_action(action.bucket_action))
            })
            .collect()
    }
}

fn parse_pairs(pairs: &str) -> Vec<(String, String)> {
    let pairs = pairs.split(',').filter_map(|pair| pair.split_once('='));
    pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

fn format_id(id: &BucketId) -> String {
    let mut pairs: Vec<_> = id.bucket.iter().map(|(key, value)| format!("{key}={value}")).collect();
    pairs.sort();
    pairs.join(",")
}

/// `allow`, `deny`, `abandon`, or `MAX + TOKENS/INTERVAL`; each assignment lasts ten seconds.
fn format_action(action: Option<BucketAction>) -> String {
    let assignment = match action.unwrap() {
        BucketAction::AbandonAction(_) => return "abandon".to_owned(),
        BucketAction::QuotaAssignmentAction(assignment) => assignment,
    };
    assert_eq!(assignment.assignment_time_to_live.unwrap().seconds, 10);
    match assignment.rate_limit_strategy.unwrap().strategy.unwrap() {
        Strategy::BlanketRule(0) => "allow".to_owned(),
        Strategy::BlanketRule(1) => "deny".to_owned(),
        Strategy::TokenBucket(bucket) => {
            let (tokens, interval) =
                (bucket.tokens_per_fill.unwrap(), bucket.fill_interval.unwrap());
            format!("{} + {}/{}s", bucket.max_tokens, tokens.value, interval.seconds)
        }
        other => panic!("{other:?}"),
    }
}

fn map<const N: usize>(pairs: [(&str, &str); N]) -> BTreeMap<String, String> {
    pairs.map(|(id, action)| (id.to_owned(), action.to_owned())).into()
}

#[tokio::test]
async fn clients_share_a_limit_on_redis() {
    let server = Server::start();
    let daemons =
        [Daemon::start_on(&server, POLICIES).await, Daemon::start_on(&server, POLICIES).await];
    let mut streams = Vec::new();
    // A quarter of 980 units, and of the 300 tokens, for each client until its load is known. The
    // first tokens are a quarter of the burst, for all clients together.
    for (daemon, tokens) in [(0, 75), (1, 25)] {
        let mut stream = Stream::open_with(&daemons[daemon], "api", &["user=ann"]).await;
        let bucket = stream.next().await.remove("user=ann").unwrap();
        let (max, rate) = bucket.split_once(" + ").unwrap();
        assert_eq!(rate, "245/1s");
        let max: u64 = max.parse().unwrap();
        // Some more may have come since the first one.
        assert!((tokens..=75).contains(&max), "{max} of {tokens}");
        streams.push(stream);
    }
    // Another key has its own limit.
    streams[0].report("", &["user=bob"]);
    let bob = "user=bob";
    let answers = loop {
        let answers = streams[0].next().await;
        if answers.contains_key(bob) {
            break answers;
        }
    };
    assert_eq!(answers[bob], "75 + 245/1s");
}

#[tokio::test]
async fn each_bucket_is_answered_whatever_the_others_are() {
    let server = Server::start();
    let daemon = Daemon::start_on(&server, POLICIES).await;
    let many = (0..31).map(|index| format!("k{index}=v")).collect::<Vec<_>>().join(",");
    let mut stream =
        Stream::open_with(&daemon, "api", &["", "user=", &many, "user=ann,plan=free"]).await;
    let mut answers = stream.next().await;
    assert_eq!(answers.remove("plan=free,user=ann").unwrap(), "75 + 245/1s");
    assert_eq!(answers.remove("user=").unwrap(), "abandon");
    assert_eq!(answers.into_values().collect::<Vec<_>>(), ["abandon"]);

    for (domain, answer) in
        [("ghost", "allow"), ("unknown", "allow"), ("listed", "allow"), ("blocked", "deny")]
    {
        let mut stream = Stream::open_with(&daemon, domain, &["user=ann"]).await;
        assert_eq!(stream.next().await, map([("user=ann", answer)]), "{domain}");
    }
    // It cannot be divided.
    let mut stream = Stream::open_with(&daemon, "several", &["user=ann"]).await;
    stream.assert_silent(Duration::from_millis(500)).await;
}

#[tokio::test]
async fn a_service_in_shadow_mode_denies_nothing() {
    let server = Server::start();
    let daemon = Daemon::start_on(&server, &format!("envoy: {{ shadow: true }}\n{POLICIES}")).await;
    for domain in ["api", "blocked"] {
        let mut stream = Stream::open_with(&daemon, domain, &["user=ann"]).await;
        assert_eq!(stream.next().await, map([("user=ann", "allow")]), "{domain}");
    }
}

#[tokio::test]
async fn a_blocked_key_is_denied_and_others_are_not() {
    let server = Server::start();
    let daemon = Daemon::start_on(&server, POLICIES).await;
    let body = r#"{"policy":"api","key":"user=ann"}"#;
    assert_eq!(daemon.post("/v1/block", body).await.status, 200);
    let mut stream = Stream::open_with(&daemon, "api", &["user=ann", "user=bob"]).await;
    assert_eq!(stream.next().await, map([("user=ann", "deny"), ("user=bob", "75 + 245/1s")]));
    assert_eq!(daemon.post("/v1/unblock", body).await.status, 200);
    // The next assignments follow after four seconds.
    assert_eq!(stream.next().await["user=ann"], "75 + 245/1s");
}

#[tokio::test]
async fn a_report_of_a_thousand_buckets_is_read() {
    let server = Server::start();
    let daemon = Daemon::start_on(&server, POLICIES).await;
    let mut stream = Stream::open(&daemon).await.unwrap();
    let buckets: Vec<_> =
        (0..1_100).map(|index| format!("user={index:04},path={:0>200}", "")).collect();
    stream.report("api", &buckets.iter().map(String::as_str).collect::<Vec<_>>());
    let mut actions = BTreeMap::new();
    while actions.len() < 1_100 {
        actions.extend(stream.next().await);
    }
    let assigned = actions.values().filter(|action| *action == "75 + 245/1s").count();
    let abandoned = actions.values().filter(|action| *action == "abandon").count();
    assert_eq!((assigned, abandoned), (1_000, 100));
}

#[tokio::test]
async fn a_memory_store_assigns_nothing_until_earlier_assignments_have_expired() {
    let daemon = Daemon::start_with(POLICIES).await;
    let mut stream = Stream::open_with(&daemon, "api", &["user=ann"]).await;
    stream.assert_silent(Duration::from_millis(500)).await;
}

#[tokio::test]
async fn a_reload_changes_assignments_at_once() {
    let server = Server::start();
    let limit = Arc::new(Mutex::new("1000/s burst 400"));
    let read = {
        let (limit, url) = (Arc::clone(&limit), server.url());
        move || {
            let limit = *limit.lock().unwrap();
            Config::from_yaml(&format!(
                "store: {{ url: '{url}', deadline: 5s }}\npolicies: {{ api: {{ limits: ['{limit}'] }} }}"
            ))
        }
    };
    let daemon = Daemon::start_on_store_with_reader(read).await;
    let mut stream = Stream::open_with(&daemon, "api", &["user=ann"]).await;
    assert_eq!(stream.next().await, map([("user=ann", "75 + 245/1s")]));
    *limit.lock().unwrap() = "20/s burst 40";
    daemon.reload().await;
    // 196 units of a token in 10 s. Another fill interval is a new bucket.
    let changed = loop {
        let assignment = stream.next().await.remove("user=ann").unwrap();
        if assignment != "75 + 245/1s" {
            break assignment;
        }
    };
    assert_eq!(changed, "7 + 49/10s");
}

#[tokio::test]
async fn clients_need_a_token() {
    let server = Server::start();
    let yaml = format!("store: {{ url: '{}', deadline: 5s }}\n{POLICIES}", server.url());
    let mut config = Config::from_yaml(&yaml).unwrap();
    config.tokens = vec![token("it", "check", "'*'")];
    let daemon = Daemon::start_on_store(config).await;
    let error = Stream::open(&daemon).await.err().unwrap();
    assert_eq!(error.code(), Code::Unauthenticated, "{error}");
}

#[tokio::test]
async fn nothing_is_assigned_while_the_store_is_unavailable() {
    let server = Server::start();
    let daemon = Daemon::start_on(&server, POLICIES).await;
    server.kill();
    let mut stream = Stream::open_with(&daemon, "api", &["user=ann"]).await;
    stream.assert_silent(Duration::from_secs(3)).await;
    server.restart();
    assert_eq!(stream.next().await, map([("user=ann", "75 + 245/1s")]));
}

#[tokio::test]
async fn a_share_survives_an_outage_of_the_store() {
    let server = Server::start();
    let yaml = format!("store: {{ url: '{}', deadline: 200ms }}\n{POLICIES}", server.url());
    let daemon = Daemon::start_on_store(Config::from_yaml(&yaml).unwrap()).await;
    let mut stream = Stream::open_with(&daemon, "api", &["user=ann"]).await;
    assert_eq!(stream.next().await, map([("user=ann", "75 + 245/1s")]));
    server.pause();
    // The assignment is not renewed after four seconds.
    stream.assert_silent(Duration::from_secs(6)).await;
    server.resume();
    assert_eq!(stream.next().await, map([("user=ann", "75 + 245/1s")]));
}

#[tokio::test]
async fn a_stream_does_not_end_with_the_age_of_its_connection() {
    let server = Server::start();
    let yaml = format!("limits: {{ connection_age: 1s }}\n{POLICIES}");
    let daemon = Daemon::start_on(&server, &yaml).await;
    let mut stream = Stream::open_with(&daemon, "api", &["user=ann"]).await;
    for _ in 0..2 {
        // The second one follows after four seconds.
        assert_eq!(stream.next().await, map([("user=ann", "75 + 245/1s")]));
    }
}

#[tokio::test]
async fn a_shutdown_ends_streams() {
    let server = Server::start();
    let mut daemon = Daemon::start_on(&server, POLICIES).await;
    let mut stream = Stream::open_with(&daemon, "api", &["user=ann"]).await;
    stream.next().await;
    daemon.stop();
    let error = loop {
        match stream.responses.message().await {
            Ok(Some(_)) => {}
            Ok(None) => panic!("the stream has no status"),
            Err(error) => break error,
        }
    };
    assert_eq!(error.code(), Code::Unavailable, "{error}");
    daemon.join().await;
}
