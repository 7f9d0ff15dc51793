//! Queue limits: requests wait for their turn.

use std::time::Duration;

use tokio::time::Instant;
use tollgate::{Cost, Key, Limiter, MemoryLimiter};
use tollgate_testkit::{Server, wait_until};
use tollgate_tower::{Admission, KeyExtractor, RateLimitLayer};
use tower::{Layer, ServiceExt, service_fn};

use crate::support::{api, around, get, redis, send};

#[tokio::test]
async fn requests_of_a_queue_are_spaced() {
    let server = Server::start();
    for limiter in [MemoryLimiter::new().into(), redis(&server).await] {
        let limiter: Limiter = limiter;
        let layer = RateLimitLayer::new(limiter, api("10/s queue 3"), KeyExtractor::global());
        let (service, application) = around(&layer);
        let start = Instant::now();
        let requests: Vec<_> = (0..10)
            .map(|_| {
                let service = service.clone();
                tokio::spawn(async move {
                    (send(&service, get("/")).await.status.as_u16(), start.elapsed())
                })
            })
            .collect();
        let mut admitted = Vec::new();
        for request in requests {
            let (status, elapsed) = request.await.unwrap();
            if status == 200 {
                admitted.push(elapsed);
            }
        }
        admitted.sort_unstable();
        // One departs at once, three wait, and the others are denied.
        assert_eq!((admitted.len(), application.calls()), (4, 4));
        for (index, elapsed) in admitted.iter().enumerate().skip(1) {
            let earliest = Duration::from_millis(100) * u32::try_from(index).unwrap();
            assert!(*elapsed >= earliest - Duration::from_millis(1), "{admitted:?}");
        }
    }
}

#[tokio::test]
async fn handler_sees_the_delay() {
    let layer =
        RateLimitLayer::new(MemoryLimiter::new(), api("20/s queue 3"), KeyExtractor::global());
    let service = layer.layer(service_fn(|request: http::Request<()>| async move {
        let delay = request.extensions().get::<Admission>().unwrap().delay();
        let body = http_body_util::Full::<bytes::Bytes>::default();
        let mut response = http::Response::new(body);
        response.extensions_mut().insert(delay);
        Ok::<_, std::convert::Infallible>(response)
    }));
    let delays = [(); 2].map(|()| service.clone().oneshot(get("/")));
    let mut found = Vec::new();
    for response in delays {
        found.push(*response.await.unwrap().extensions().get::<Duration>().unwrap());
    }
    assert_eq!(found[0], Duration::ZERO);
    assert!(found[1] <= Duration::from_millis(50));
}

#[tokio::test]
async fn a_delay_above_the_bound_is_denied_and_refunded() {
    let (limiter, clock) = crate::support::stopped();
    let queue = api("1/min queue 5");
    let layer = RateLimitLayer::new(limiter.clone(), queue.clone(), KeyExtractor::global())
        .max_delay(Duration::from_millis(20));
    let (service, application) = around(&layer);
    assert_eq!(send(&service, get("/")).await.status, 200);
    for _ in 0..20 {
        let denied = send(&service, get("/")).await;
        assert_eq!(denied.status, 429);
        // 60 s less the bound of 20 ms.
        assert_eq!(denied.header("retry-after"), Some("60"));
        assert!(denied.body.contains("59.98"), "{}", denied.body);
    }
    crate::support::advance(&clock, Duration::from_millis(59_980));
    assert_eq!(send(&service, get("/")).await.status, 200, "the wait is as promised");
    assert_eq!(application.calls(), 2);
}

/// The fast path of leaky-bucket loses the tokens of dropped waiters. A place behind which others wait
/// cannot be given back, because they know when their turn is.
#[tokio::test]
async fn the_last_waiting_request_is_refunded_when_it_is_dropped() {
    let server = Server::start();
    for limiter in [MemoryLimiter::new().into(), redis(&server).await] {
        let limiter: Limiter = limiter;
        let queue = api("1/min queue 1");
        let layer = RateLimitLayer::new(limiter.clone(), queue.clone(), KeyExtractor::global())
            .max_delay(Duration::from_secs(600));
        let (service, application) = around(&layer);
        assert_eq!(send(&service, get("/")).await.status, 200);
        let remaining = async || {
            let key = Key::new("global").unwrap();
            limiter.peek(&queue, key, Cost::ONE).await.remaining
        };
        for _ in 0..3 {
            let clone = service.clone();
            let waiting = tokio::spawn(async move { send(&clone, get("/")).await });
            wait_until("the queue is full", async || remaining().await == 0).await;
            assert_eq!(send(&service, get("/")).await.status, 429);
            waiting.abort();
            assert!(waiting.await.unwrap_err().is_cancelled());
            wait_until("the place is free", async || remaining().await == 1).await;
        }
        assert_eq!(application.calls(), 1);
    }
}
