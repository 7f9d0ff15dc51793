//! The layer of a client, against a real upstream.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::get;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Empty};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use tokio::net::TcpListener;
use tokio::time::Instant;
use tollgate::{Cost, Denied, Limiter, Policy};
use tollgate_testkit::{Server, wait_until};
use tollgate_tower::{
    ClientBody, ClientError, ClientRateLimit, ClientRateLimitLayer, HeaderStyle, KeyExtractor,
    RateLimitLayer,
};
use tower::{Layer, ServiceExt};

use crate::support::redis;

type HttpClient = ClientRateLimit<Client<HttpConnector, Empty<Bytes>>>;

/// An upstream that counts the requests that reach it.
struct Upstream {
    address: SocketAddr,
    requests: Arc<AtomicUsize>,
}

impl Upstream {
    async fn start(layer: Option<RateLimitLayer>, headers: HeaderMap, status: StatusCode) -> Self {
        let requests = Arc::new(AtomicUsize::new(0));
        let mut app = Router::new().route("/", get(async move || (status, headers, "done")));
        if let Some(layer) = layer {
            app = app.layer(layer);
        }
        let counter = Arc::clone(&requests);
        let app =
            app.layer(axum::middleware::map_request(move |request: axum::extract::Request| {
                counter.fetch_add(1, Ordering::SeqCst);
                std::future::ready(request)
            }));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Upstream { address, requests }
    }

    /// An upstream with a policy.
    async fn limited(limits: &str, style: HeaderStyle) -> Self {
        let policy = Policy::named("upstream", limits).unwrap();
        let layer = RateLimitLayer::new(Limiter::memory(), policy, KeyExtractor::global());
        Upstream::start(Some(layer.headers([style])), HeaderMap::new(), StatusCode::OK).await
    }

    fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }

    async fn send(
        &self,
        client: &HttpClient,
    ) -> Result<Response<ClientBody<hyper::body::Incoming>>, Denied> {
        let uri = format!("http://{}/", self.address);
        let request = Request::get(uri).body(Empty::new()).unwrap();
        client.clone().oneshot(request).await.map_err(|error| match error {
            ClientError::Denied(denied) => denied,
            error => panic!("{error}"),
        })
    }

    async fn status(&self, client: &HttpClient) -> u16 {
        let response = self.send(client).await.unwrap();
        let status = response.status().as_u16();
        response.into_body().collect().await.unwrap();
        status
    }
}

fn client(layer: &ClientRateLimitLayer) -> HttpClient {
    layer.layer(Client::builder(TokioExecutor::new()).build_http())
}

fn policy(limits: &str) -> Policy {
    Policy::named("outbound", limits).unwrap()
}

#[tokio::test]
async fn a_client_spends_before_it_sends() {
    let upstream = Upstream::limited("100/s", HeaderStyle::Draft11).await;
    let other = Upstream::limited("100/s", HeaderStyle::Draft11).await;
    let layer = ClientRateLimitLayer::new(Limiter::memory(), policy("3/h"));
    let client = client(&layer.max_wait(Duration::from_secs(1)));
    for _ in 0..3 {
        assert_eq!(upstream.status(&client).await, 200);
    }
    let denied = upstream.send(&client).await.map(drop).unwrap_err();
    assert!(matches!(denied, Denied::RetryAfter(time) if time > Duration::from_secs(1_000)));
    assert_eq!(upstream.requests(), 3);
    // Each host has a limit of its own.
    assert_eq!(other.status(&client).await, 200);
}

#[tokio::test]
async fn a_client_waits_until_its_policy_admits() {
    let upstream = Upstream::limited("100/s", HeaderStyle::Draft11).await;
    let client = client(&ClientRateLimitLayer::new(Limiter::memory(), policy("10/s burst 1")));
    let start = Instant::now();
    for _ in 0..4 {
        assert_eq!(upstream.status(&client).await, 200);
    }
    assert!(start.elapsed() >= Duration::from_millis(300), "{:?}", start.elapsed());
}

/// The upstream never has to deny: its headers say that nothing remains.
#[tokio::test]
async fn a_client_pauses_when_the_upstream_says_that_nothing_remains() {
    for style in [
        HeaderStyle::Draft11,
        HeaderStyle::Draft6,
        HeaderStyle::LegacyDelta,
        HeaderStyle::LegacyEpoch,
    ] {
        let upstream = Upstream::limited("2/s fixed from-first", style).await;
        let client = client(&ClientRateLimitLayer::new(Limiter::memory(), policy("1000/s")));
        let start = Instant::now();
        for _ in 0..4 {
            assert_eq!(upstream.status(&client).await, 200, "{style:?}");
        }
        assert!(start.elapsed() >= Duration::from_millis(900), "{style:?} {:?}", start.elapsed());
    }
}

#[tokio::test]
async fn clients_that_share_a_limiter_obey_the_retry_after_that_one_received() {
    let server = Server::start();
    for limiter in [Limiter::memory(), redis(&server).await] {
        let mut headers = HeaderMap::new();
        headers.insert("retry-after", "2".parse().unwrap());
        let upstream = Upstream::start(None, headers, StatusCode::TOO_MANY_REQUESTS).await;
        let layer = ClientRateLimitLayer::new(limiter.clone(), policy("1000/s"));
        let first = client(&layer.clone().max_wait(Duration::from_millis(500)));
        let second = client(&layer);
        assert_eq!(upstream.status(&first).await, 429);
        let start = Instant::now();
        let denied = upstream.send(&first).await.map(drop).unwrap_err();
        assert!(matches!(denied, Denied::RetryAfter(time) if time <= Duration::from_secs(2)));
        assert_eq!(upstream.requests(), 1);
        assert_eq!(upstream.status(&second).await, 429);
        assert!(start.elapsed() >= Duration::from_millis(1_500), "{:?}", start.elapsed());
        assert_eq!(upstream.requests(), 2);
    }
}

#[tokio::test]
async fn a_pause_is_not_shortened_and_not_longer_than_the_longest() {
    let mut headers = HeaderMap::new();
    headers.insert("retry-after", "99999".parse().unwrap());
    let upstream = Upstream::start(None, headers, StatusCode::SERVICE_UNAVAILABLE).await;
    let limiter = Limiter::memory();
    let layer = ClientRateLimitLayer::new(limiter.clone(), policy("1000/s"));
    let key = upstream.address.to_string();
    let client = client(&layer.max_wait(Duration::ZERO).max_pause(Duration::from_secs(60)));
    assert_eq!(upstream.status(&client).await, 503);
    let denied = upstream.send(&client).await.map(drop).unwrap_err();
    assert!(matches!(denied, Denied::RetryAfter(time) if time <= Duration::from_secs(60)));
    // An operator blocks the host while a request is in flight.
    limiter.unblock(&policy("1000/s"), &key).await.map(drop).unwrap();
    let outbound = policy("1000/s");
    let (response, blocked) =
        tokio::join!(upstream.send(&client), limiter.block(&outbound, &key, None));
    assert!(blocked.unwrap().changed);
    drop(response);
    let denied = limiter.peek(&policy("1000/s"), &key, Cost::ONE).await;
    assert_eq!(denied.outcome().into_result(), Err(Denied::Blocked));
}

#[tokio::test]
async fn a_slot_is_held_until_the_body_has_ended() {
    let upstream = Upstream::limited("100/s", HeaderStyle::Draft11).await;
    let layer = ClientRateLimitLayer::new(Limiter::memory(), policy("1 concurrent lease 60s"));
    let client = client(&layer.max_wait(Duration::from_millis(100)));
    let response = upstream.send(&client).await.unwrap();
    assert!(upstream.send(&client).await.is_err());
    response.into_body().collect().await.unwrap();
    assert_eq!(upstream.status(&client).await, 200);
    assert_eq!(upstream.requests(), 2);
}

#[tokio::test]
async fn an_error_of_a_release_is_reported() {
    let upstream = Upstream::limited("100/s", HeaderStyle::Draft11).await;
    let server = Server::start();
    let limiter = redis(&server).await;
    let errors = Arc::new(AtomicUsize::new(0));
    let reported = Arc::clone(&errors);
    let layer =
        ClientRateLimitLayer::new(limiter, policy("1 concurrent lease 60s")).on_error(move |_| {
            reported.fetch_add(1, Ordering::SeqCst);
        });
    let response = upstream.send(&client(&layer)).await.unwrap();
    server.kill();
    drop(response);
    wait_until("the report", async || errors.load(Ordering::SeqCst) == 1).await;
}
