//! envoyproxy/ratelimit itself beside `tollgate ratelimit`, each on its own Redis: random requests
//! are sent to both at the same time, and the whole responses and the metrics are compared.
//!
//! The module `differences` and `docs/ratelimit.md` have every difference. `cargo xtask test --peers`
//! compiles envoyproxy/ratelimit; without it the tests are skipped.

mod differences;
mod metrics;
mod original;
mod requests;

use std::fs;
use std::io::Write;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use envoy_types::pb::envoy::service::ratelimit::v3::{RateLimitRequest, RateLimitResponse};
use tollgate_testkit::Server;
use tonic::Status;

use self::original::Original;
use self::requests::{Domain, Requests};
use crate::client::{self, Client};
use crate::installation::{Installation, Ratelimit};
use crate::process::{page_block, read_repository, repository};

const REQUESTS: usize = 10_000;
/// Without quotas: a request over some of several quotas passes since March 2026, after the newest
/// version that is available as a module. `gateways/ratelimit/quotas.rs` tests them.
const LIMITS: &str = include_str!("limits.yaml");

/// Both programs with the same files and variables.
struct Pair {
    original: Original,
    ours: Ratelimit,
    clients: [Client; 2],
    _stores: [Server; 2],
}

impl Pair {
    async fn start(installation: &Installation, variables: &[(&str, &str)]) -> Self {
        let stores = [Server::start(), Server::start()];
        let original = Original::start(installation.path(), &stores[0].address(), variables);
        let address = stores[1].address();
        let own = [("REDIS_URL", &*address), ("REDIS_TIMEOUT", "10s")];
        let ours = installation.start(&[variables, &own].concat());
        ours.wait_for_health(200);
        let clients = [client::connect(original.grpc()).await, client::connect(ours.grpc()).await];
        Pair { original, ours, clients, _stores: stores }
    }

    /// Sends a request to both. `None` if a window may have ended between the two decisions.
    async fn send(&mut self, request: &RateLimitRequest) -> Option<[Answer; 2]> {
        let [original, ours] = &mut self.clients;
        let begin = since_epoch();
        // Most requests are decided early in a second, and every window begins with a second.
        let early = Duration::from_millis(600);
        if begin.subsec_nanos() > early.subsec_nanos() {
            tokio::time::sleep(Duration::from_secs(begin.as_secs() + 1) - begin).await;
        }
        let begin = since_epoch().as_secs();
        let (original, ours) = tokio::join!(
            original.should_rate_limit(request.clone()),
            ours.should_rate_limit(request.clone())
        );
        (since_epoch().as_secs() == begin).then(|| [original, ours].map(read))
    }
}

#[expect(clippy::disallowed_methods, reason = "the other program reads this clock too")]
fn since_epoch() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap()
}

/// A response, or the message of an error.
type Answer = Result<RateLimitResponse, String>;

fn read(answer: Result<tonic::Response<RateLimitResponse>, Status>) -> Answer {
    match answer {
        Ok(response) => Ok(response.into_inner()),
        Err(status) => Err(format!("{:?}: {}", status.code(), status.message())),
    }
}

/// The files of both, and the requests that they limit.
fn installation() -> (Installation, Vec<Domain>) {
    let installation = Installation::new();
    let manifest = read_repository("deploy/kubernetes/ratelimit.yaml");
    let (_, edge) = manifest.split_once("  edge.yaml: |\n").unwrap();
    let edge = edge.lines().take_while(|line| *line != "---").map(|line| format!("{line}\n"));
    // The page ends with a limit that only Tollgate has.
    let page = page_block(&read_repository("docs/envoy-ratelimit-config.md"), "envoy.config");
    let (page, _) = page.split_once("  - key: client\n").unwrap();
    let mut files = vec![
        ("limits.yaml".to_owned(), LIMITS.to_owned()),
        ("edge.yaml".to_owned(), edge.collect()),
        ("page.yaml".to_owned(), page.to_owned()),
    ];
    for file in fs::read_dir(repository("target/tools/ratelimit/examples")).unwrap() {
        let file = file.unwrap();
        let name = file.file_name().into_string().unwrap();
        files.push((name, fs::read_to_string(file.path()).unwrap()));
    }
    assert_eq!(files.len(), 5, "files of both programs");
    for (name, text) in &files {
        installation.limits(name, text);
    }
    (installation, files.iter().map(|(_, text)| Domain::from_yaml(text)).collect())
}

/// Sends `count` random requests to both.
async fn compare(count: usize, variables: &[(&str, &str)]) {
    if !Original::is_installed() {
        // Also shown if the harness captures output.
        let _ = writeln!(
            std::io::stderr(),
            "SKIPPED: envoyproxy/ratelimit is not installed; cargo xtask test --peers compiles it"
        );
        return;
    }
    let (installation, domains) = installation();
    let seed = fastrand::u64(..);
    let mut requests = Requests::new(seed, domains);
    let mut pair = Pair::start(&installation, variables).await;
    let (mut compared, mut restarts, mut over_limit) = (0, 0, 0);
    while compared < count {
        let request = requests.next();
        let Some([mut original, ours]) = pair.send(&request).await else {
            // One of them may have counted the request in the next window.
            restarts += 1;
            assert!(restarts < 20, "the machine is too busy to compare");
            pair = Pair::start(&installation, variables).await;
            continue;
        };
        if let (Ok(original), Ok(ours)) = (&mut original, &ours) {
            differences::apply(original, ours);
        }
        assert_eq!(ours, original, "seed {seed}, after {compared} requests: {request:#?}");
        over_limit += usize::from(original.is_ok_and(|response| response.overall_code == 2));
        compared += 1;
    }
    assert!(over_limit > count / 20, "{over_limit} of {count} are over a limit");
    metrics::compare(&pair.original, &pair.ours).await;
    println!("{count} requests, {over_limit} of them over a limit, {restarts} restarts");
}

#[tokio::test(flavor = "multi_thread")]
async fn random_requests_have_equal_responses() {
    compare(REQUESTS, &[("RESPONSE_DYNAMIC_METADATA", "true")]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn random_requests_with_headers_have_equal_responses() {
    compare(REQUESTS / 5, &[("LIMIT_RESPONSE_HEADERS_ENABLED", "true")]).await;
}
