//! Requests in flight, and clones of the service.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody};
use tokio::sync::{Semaphore, mpsc};
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;
use tollgate::{Cost, Key, Limiter, MemoryLimiter, Policy};
use tollgate_testkit::{Server, wait_until};
use tollgate_tower::{Admission, KeyExtractor, RateLimit, RateLimitLayer};
use tower::{Layer, Service, ServiceExt, service_fn};

use crate::support::{api, around, get, redis, send};

async fn stores() -> (Server, [Limiter; 2]) {
    let server = Server::start();
    let redis = redis(&server).await;
    (server, [MemoryLimiter::new().into(), redis])
}

/// Under axum with a buffer, each connection of `tower::limit::RateLimit` has a state of its own: a cap
/// of 5 lets 1,500 requests through.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn cloned_services_admit_exactly_the_cap() {
    let (_server, limiters) = stores().await;
    for limiter in limiters {
        for (limits, cap) in [("100/h", 100), ("1/h log", 1), ("999/h fixed", 999)] {
            let name = format!("cap{cap}");
            let policy = crate::support::policy(&name, limits);
            let layer = RateLimitLayer::new(limiter.clone(), policy, KeyExtractor::global());
            let (service, application) = around(&layer);
            let requests: Vec<_> = (0..1_000)
                .map(|_| {
                    let service = service.clone();
                    tokio::spawn(async move { send(&service, get("/")).await.status.as_u16() })
                })
                .collect();
            let mut admitted = 0;
            for request in requests {
                match request.await.unwrap() {
                    200 => admitted += 1,
                    429 => {}
                    other => panic!("status {other}"),
                }
            }
            assert_eq!((admitted, application.calls()), (cap, cap), "{limits}");
        }
    }
}

/// A service that counts the requests in flight, and waits for a permit.
#[derive(Clone, Default)]
struct Slow {
    permits: Arc<Option<Semaphore>>,
    in_flight: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
}

impl Slow {
    fn new() -> Self {
        Slow { permits: Arc::new(Some(Semaphore::new(0))), ..Slow::default() }
    }

    fn admit(&self, count: usize) {
        self.permits.as_ref().as_ref().unwrap().add_permits(count);
    }

    fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::SeqCst)
    }

    fn around(
        &self,
        layer: &RateLimitLayer,
    ) -> RateLimit<
        impl Service<Request<()>, Response = Response<Full<Bytes>>, Error = Infallible, Future: Send>
        + Clone
        + use<>,
    > {
        let slow = self.clone();
        layer.layer(service_fn(move |_| {
            let slow = slow.clone();
            async move {
                let now = slow.in_flight.fetch_add(1, Ordering::SeqCst) + 1;
                slow.most.fetch_max(now, Ordering::SeqCst);
                let _end = OnDrop(Arc::clone(&slow.in_flight));
                slow.permits.as_ref().as_ref().unwrap().acquire().await.unwrap().forget();
                Ok(Response::new(Full::from("done")))
            }
        }))
    }
}

struct OnDrop(Arc<AtomicUsize>);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

fn layer(limiter: Limiter, policy: Policy) -> RateLimitLayer {
    RateLimitLayer::new(limiter, policy, KeyExtractor::global())
}

async fn remaining(limiter: &Limiter, policy: &Policy) -> u64 {
    limiter.peek(policy, Key::new("global").unwrap(), Cost::ONE).await.remaining
}

#[tokio::test]
async fn requests_in_flight_are_limited_and_places_are_reused() {
    let (_server, limiters) = stores().await;
    for limiter in limiters {
        let slots = api("3 concurrent lease 60s");
        let slow = Slow::new();
        let service = slow.around(&layer(limiter.clone(), slots.clone()));
        for _ in 0..2 {
            let requests: Vec<_> = (0..20)
                .map(|_| {
                    let service = service.clone();
                    tokio::spawn(async move {
                        let response = service.oneshot(get("/")).await.unwrap();
                        let status = response.status().as_u16();
                        response.into_body().collect().await.unwrap();
                        status
                    })
                })
                .collect();
            wait_until("all are decided", async || {
                requests.iter().filter(|request| !request.is_finished()).count() == 3
            })
            .await;
            slow.admit(3);
            let mut statuses = Vec::new();
            for request in requests {
                statuses.push(request.await.unwrap());
            }
            statuses.sort_unstable();
            assert_eq!((statuses[2], statuses[3]), (200, 429), "{statuses:?}");
            wait_until("all slots are free", async || remaining(&limiter, &slots).await == 3).await;
        }
        assert_eq!(slow.most.load(Ordering::SeqCst), 3);
    }
}

#[tokio::test]
async fn in_memory_the_place_is_free_before_the_response_has_ended() {
    let limiter = Limiter::from(MemoryLimiter::new());
    let (service, application) = around(&layer(limiter, api("1 concurrent lease 60s")));
    for _ in 0..1_000 {
        assert_eq!(send(&service, get("/")).await.status, 200);
    }
    assert_eq!(application.calls(), 1_000);
}

#[tokio::test]
async fn a_cancelled_request_releases_its_place() {
    let (_server, limiters) = stores().await;
    for limiter in limiters {
        let slots = api("1 concurrent lease 60s");
        let slow = Slow::new();
        let service = slow.around(&layer(limiter.clone(), slots.clone()));
        let request = tokio::spawn(service.clone().oneshot(get("/")));
        wait_until("the call", async || slow.in_flight() == 1).await;
        assert_eq!(service.clone().oneshot(get("/")).await.unwrap().status(), 429);
        request.abort();
        assert!(request.await.unwrap_err().is_cancelled());
        wait_until("the slot is free", async || remaining(&limiter, &slots).await == 1).await;
        assert_eq!(slow.in_flight(), 0);
    }
}

/// A future that is dropped while the store decides must not keep the slot until its lease ends.
#[tokio::test]
async fn a_request_that_is_cancelled_during_its_decision_releases_its_place() {
    let server = Server::start();
    let limiter = redis(&server).await;
    let slots = api("1 concurrent lease 60s");
    let (service, application) = around(&layer(limiter.clone(), slots.clone()));
    for _ in 0..3 {
        // The request is sent, and executed after it is cancelled.
        server.pause();
        let request = tokio::spawn(service.clone().oneshot(get("/")));
        tokio::time::sleep(Duration::from_millis(100)).await;
        request.abort();
        assert!(request.await.unwrap_err().is_cancelled());
        server.resume();
        tokio::time::sleep(Duration::from_millis(300)).await;
        wait_until("the slot is free", async || remaining(&limiter, &slots).await == 1).await;
        // The answer arrives, but is not read.
        let mut request = Box::pin(service.clone().oneshot(get("/")));
        tokio::select! {
            biased;
            _ = &mut request => panic!("the store answers at once"),
            () = std::future::ready(()) => {}
        }
        wait_until("the lease is acquired", async || remaining(&limiter, &slots).await == 0).await;
        tokio::time::sleep(Duration::from_millis(100)).await;
        drop(request);
        wait_until("the slot is free", async || remaining(&limiter, &slots).await == 1).await;
    }
    assert_eq!(application.calls(), 0);
}

#[tokio::test]
async fn the_place_is_held_until_the_body_has_ended() {
    let (_server, limiters) = stores().await;
    for limiter in limiters {
        let slots = api("1 concurrent lease 60s");
        let (senders, mut receivers) = mpsc::unbounded_channel();
        let service =
            layer(limiter.clone(), slots.clone()).layer(service_fn(move |_: Request<()>| {
                let (sender, receiver) = mpsc::channel::<Bytes>(1);
                senders.send(sender).unwrap();
                let frames = ReceiverStream::new(receiver);
                let frames = frames.map(|data| Ok::<_, Infallible>(Frame::data(data)));
                std::future::ready(Ok::<_, Infallible>(Response::new(StreamBody::new(frames))))
            }));
        // The body ends.
        let response = service.clone().oneshot(get("/")).await.unwrap();
        let sender = receivers.recv().await.unwrap();
        sender.send(Bytes::from("part")).await.unwrap();
        let mut body = response.into_body();
        assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "part");
        assert_eq!(service.clone().oneshot(get("/")).await.unwrap().status(), 429);
        drop(sender);
        assert!(body.frame().await.is_none());
        wait_until("the slot is free", async || remaining(&limiter, &slots).await == 1).await;
        // The body is dropped, because the client disconnects.
        let response = service.clone().oneshot(get("/")).await.unwrap();
        assert_eq!(response.status(), 200);
        let _sender = receivers.recv().await.unwrap();
        assert_eq!(remaining(&limiter, &slots).await, 0);
        drop(response);
        wait_until("the slot is free", async || remaining(&limiter, &slots).await == 1).await;
    }
}

/// A request that is longer than its lease loses its slot in Concurrent Policies of .NET.
#[tokio::test]
async fn a_long_request_keeps_its_place() {
    let (_server, limiters) = stores().await;
    for limiter in limiters {
        let slots = api("1 concurrent lease 600ms");
        let slow = Slow::new();
        let service = slow.around(&layer(limiter.clone(), slots.clone()));
        let request = tokio::spawn(service.clone().oneshot(get("/")));
        wait_until("the call", async || slow.in_flight() == 1).await;
        for _ in 0..4 {
            tokio::time::sleep(Duration::from_millis(500)).await;
            let second =
                tokio::time::timeout(Duration::from_secs(5), service.clone().oneshot(get("/")));
            let second = second.await.expect("a second request is denied at once");
            assert_eq!(second.unwrap().status(), 429);
        }
        slow.admit(1);
        let response = request.await.unwrap().unwrap();
        assert_eq!(response.status(), 200);
        drop(response);
        wait_until("the slot is free", async || remaining(&limiter, &slots).await == 1).await;
        // Nothing renews it any more.
        slow.admit(1);
        assert_eq!(service.oneshot(get("/")).await.unwrap().status(), 200);
    }
}

/// A WebSocket goes on after its response.
#[tokio::test]
async fn a_handler_can_keep_its_place_after_the_response() {
    let limiter = Limiter::from(MemoryLimiter::new());
    let slots = api("1 concurrent lease 60s");
    let (kept, mut admissions) = mpsc::unbounded_channel();
    let service =
        layer(limiter.clone(), slots.clone()).layer(service_fn(move |request: Request<()>| {
            kept.send(request.extensions().get::<Admission>().unwrap().clone()).unwrap();
            std::future::ready(Ok::<_, Infallible>(Response::new(Full::<Bytes>::default())))
        }));
    let response = service.oneshot(get("/")).await.unwrap();
    response.into_body().collect().await.unwrap();
    let admission = admissions.recv().await.unwrap();
    assert_eq!(remaining(&limiter, &slots).await, 0);
    drop(admission);
    assert_eq!(remaining(&limiter, &slots).await, 1);
}

/// A policy of a rate and of slots needs both, and gives back the slot only.
#[tokio::test]
async fn a_policy_can_limit_rate_and_places() {
    let limiter = Limiter::from(MemoryLimiter::new());
    let policy = api("3/h; 1 concurrent lease 60s");
    let (service, application) = around(&layer(limiter.clone(), policy.clone()));
    let mut statuses = Vec::new();
    for _ in 0..5 {
        statuses.push(send(&service, get("/")).await.status.as_u16());
    }
    assert_eq!(statuses, [200, 200, 200, 429, 429]);
    assert_eq!(application.calls(), 3);
    // A refund gives back the rate too.
    let (service, application) =
        around(&layer(limiter, api("3/h fixed; 2 concurrent lease 60s")).refund_if(|_| true));
    for _ in 0..9 {
        assert_eq!(send(&service, get("/")).await.status, 200);
    }
    assert_eq!(application.calls(), 9);
}
