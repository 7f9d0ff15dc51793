//! The store is unavailable: the policy decides, in time.

use std::time::Duration;

use tokio::time::Instant;
use tollgate::{Cost, Key, Limiter, OnStoreError};
use tollgate_testkit::{Server, wait_until};
use tollgate_tower::{Admission, KeyExtractor, RateLimitLayer, Rejection};
use tower::{Layer, ServiceExt, service_fn};

use crate::support::{api, around, get, policy, send, with_headers};

/// A limiter whose server does not respond.
async fn unavailable() -> (Server, Limiter) {
    let server = Server::start();
    let limiter =
        Limiter::builder().deadline(Duration::from_millis(50)).open(&server.url()).await.unwrap();
    server.pause();
    (server, limiter)
}

/// An offline queue makes "fail open" hang (rate-limiter-flexible #37, fastify #84).
#[tokio::test]
async fn the_policy_decides_within_the_deadline() {
    let (server, limiter) = unavailable().await;
    let layer = |policy| RateLimitLayer::new(limiter.clone(), policy, KeyExtractor::global());
    let start = Instant::now();
    let (service, closed) =
        around(&layer(policy("closed", "5/min").with_on_store_error(OnStoreError::Deny)));
    let denied = send(&service, get("/")).await;
    assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
    // Another status than that of a client that sends too much.
    assert_eq!(denied.status, 503);
    assert_eq!(denied.header("retry-after"), None);
    assert!(denied.body.contains("unavailable"), "{}", denied.body);
    let grpc = send(&service, with_headers(&["content-type: application/grpc"])).await;
    assert_eq!((grpc.status.as_u16(), grpc.header("grpc-status")), (200, Some("14")));
    assert_eq!(grpc.header("grpc-status-details-bin"), None);
    assert_eq!(closed.calls(), 0);

    let open = policy("open", "5/min").with_on_store_error(OnStoreError::Allow);
    let handler = service_fn(|request: http::Request<()>| async move {
        let admission = request.extensions().get::<Admission>().unwrap();
        let body = http_body_util::Full::<bytes::Bytes>::from(admission.is_degraded().to_string());
        Ok::<_, std::convert::Infallible>(http::Response::new(body))
    });
    let response = layer(open).layer(handler).oneshot(get("/")).await.unwrap();
    let admitted = crate::support::Reply::from(response).await;
    assert_eq!((admitted.status.as_u16(), &*admitted.body), (200, "true"));
    server.resume();
}

/// A refund of an admission that was not charged would raise the limit.
#[tokio::test]
async fn degraded_admissions_are_not_refunded() {
    let (server, limiter) = unavailable().await;
    server.resume();
    let open = api("5/h").with_on_store_error(OnStoreError::Allow);
    let key = Key::new("global").unwrap();
    let charged = async || {
        let decision = limiter.check_cost(&open, key, Cost::from(3)).await;
        !decision.degraded
    };
    wait_until("a charge by the store", charged).await;
    let layer = RateLimitLayer::new(limiter.clone(), open.clone(), KeyExtractor::global())
        .refund_if(|_| true);
    let (service, _) = around(&layer);
    server.pause();
    for _ in 0..3 {
        assert_eq!(send(&service, get("/")).await.status, 200);
    }
    server.resume();
    let remaining = async || {
        let decision = limiter.peek(&open, key, Cost::ONE).await;
        (!decision.degraded).then_some(decision.remaining)
    };
    wait_until("an answer of the store", async || remaining().await.is_some()).await;
    assert!(remaining().await.unwrap() <= 2, "{:?}", remaining().await);
}

#[tokio::test]
async fn a_rejection_because_of_an_outage_can_be_told_from_abuse() {
    let (server, limiter) = unavailable().await;
    let closed = api("5/min").with_on_store_error(OnStoreError::Deny);
    let layer = RateLimitLayer::new(limiter, closed, KeyExtractor::global()).map_rejection(
        |rejection, _, mut response| {
            let Rejection::Denied(denial) = rejection else { panic!("{rejection}") };
            assert!(denial.is_unavailable());
            *response.body_mut() = "maintenance".into();
            response
        },
    );
    let (service, _) = around(&layer);
    assert_eq!(send(&service, get("/")).await.body, "maintenance");
    server.resume();
}

/// A denial by the share of a process is a denial by a limit.
#[tokio::test]
async fn a_share_of_the_limit_applies_to_the_process() {
    let (server, limiter) = unavailable().await;
    server.resume();
    // A process has a share once it has announced itself.
    wait_until("the process is announced", async || {
        !server.command(&["KEYS", "*:processes"]).array().is_empty()
    })
    .await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    server.pause();
    let local = api("5/h log").with_on_store_error(OnStoreError::Local);
    let layer = RateLimitLayer::new(limiter, local, KeyExtractor::global());
    let (service, application) = around(&layer);
    let mut denied = None;
    for _ in 0..6 {
        let reply = send(&service, get("/")).await;
        if reply.status != 200 {
            denied = Some(reply);
            break;
        }
    }
    let denied = denied.expect("at most the limit is admitted");
    assert_eq!(denied.status, 429);
    assert!(denied.header("retry-after").is_some(), "{denied:?}");
    assert!((1..=5).contains(&application.calls()), "{}", application.calls());
    server.resume();
}
