//! Charges that depend on the response.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use tokio::sync::Semaphore;
use tollgate::{Cost, Key, Limiter, Policy};
use tollgate_testkit::{Server, wait_until};
use tollgate_tower::{KeyExtractor, RateLimit, RateLimitLayer, Rule};
use tower::{Layer, ServiceExt, service_fn};

use crate::support::{advance, api, around, get, policy, redis, send, statuses, stopped};

fn layer(limiter: impl Into<Limiter>, policy: Policy) -> RateLimitLayer {
    RateLimitLayer::new(limiter, policy, KeyExtractor::global())
}

async fn remaining(limiter: &Limiter, policy: &Policy) -> u64 {
    limiter.peek(policy, Key::new("global").unwrap(), Cost::ONE).await.remaining
}

/// Each test runs in memory and on Redis.
async fn stores() -> (Server, [Limiter; 2]) {
    let server = Server::start();
    let redis = redis(&server).await;
    (server, [stopped().0.into(), redis])
}

#[tokio::test]
async fn refunded_responses_are_not_counted() {
    let (_server, limiters) = stores().await;
    for limiter in limiters {
        let login = api("3/h log");
        let layer = layer(limiter.clone(), login.clone())
            .refund_if(|response| response.status.is_success());
        let (service, application) = around(&layer);
        let successful = || get("/status/200");
        let failed = || get("/status/401");
        let requests = [successful(), failed(), successful(), successful(), failed()];
        assert_eq!(statuses(&service, requests).await, [200, 401, 200, 200, 401]);
        assert_eq!(remaining(&limiter, &login).await, 1);
        // The third failure is the last request.
        let requests = [failed(), successful(), failed()];
        assert_eq!(statuses(&service, requests).await, [401, 429, 429]);
        assert_eq!(application.calls(), 6);
    }
}

#[tokio::test]
async fn only_failures_are_charged() {
    let (_server, limiters) = stores().await;
    for limiter in limiters {
        let layer = layer(limiter.clone(), api("2/h log"))
            .charge_if(|response| response.status.is_client_error());
        let (service, application) = around(&layer);
        let (ok, failed) = (|| get("/status/200"), || get("/status/401"));
        let requests = [ok(), ok(), ok(), failed(), ok(), failed(), ok(), failed()];
        let expected = [200, 200, 200, 401, 200, 401, 429, 429];
        assert_eq!(statuses(&service, requests).await, expected);
        assert_eq!(application.calls(), 6, "a check without a charge denies too");
    }
}

#[derive(Clone)]
struct Tokens(u32);

/// The number of tokens in the path is the actual cost.
async fn answer(request: Request<()>) -> Result<Response<Full<Bytes>>, Infallible> {
    let mut response = Response::new(Full::default());
    if let Ok(tokens) = request.uri().path()[1..].parse() {
        response.extensions_mut().insert(Tokens(tokens));
    }
    Ok(response)
}

#[tokio::test]
async fn estimate_is_replaced_by_the_cost_of_the_response() {
    let (_server, limiters) = stores().await;
    for limiter in limiters {
        let tokens = policy("tokens", "100/h");
        let layer = RateLimitLayer::with_rules(
            limiter.clone(),
            [
                Rule::new(tokens.clone(), KeyExtractor::global()).cost(|_| Cost::from(40)),
                // A lease is neither refunded nor raised.
                Rule::new(policy("slots", "3 concurrent lease 60s"), KeyExtractor::global()),
            ],
        );
        let layer = layer.settle(|response| {
            response.extensions.get::<Tokens>().map(|tokens| Cost::from(tokens.0))
        });
        let service = layer.layer(service_fn(answer));
        let send =
            async |path: &str| service.clone().oneshot(get(path)).await.unwrap().status().as_u16();
        for (path, status, remains) in [
            ("/10", 200, 90),
            ("/60", 200, 30),
            // The estimate does not fit.
            ("/1", 429, 30),
        ] {
            assert_eq!(send(path).await, status, "{path}");
            assert_eq!(remaining(&limiter, &tokens).await, remains, "{path}");
        }
        let _ = limiter.reset(&tokens, Key::new("global").unwrap()).await.unwrap();
        // Without a cost in the response the estimate stays; a cost of 0 refunds all of it.
        for (path, remains) in [("/unknown", 60), ("/0", 60), ("/40", 20)] {
            assert_eq!(send(path).await, 200, "{path}");
            assert_eq!(remaining(&limiter, &tokens).await, remains, "{path}");
        }
    }
}

/// A response may take longer than request ids are remembered.
#[tokio::test]
async fn a_late_response_is_settled_too() {
    for (actual, remains) in [("/10", 90), ("/70", 30), ("/40", 60)] {
        let (limiter, clock) = stopped();
        let tokens = policy("tokens", "100/h log");
        let rule = Rule::new(tokens.clone(), KeyExtractor::global()).cost(|_| Cost::from(40));
        let layer = RateLimitLayer::with_rules(limiter.clone(), [rule]).settle(|response| {
            response.extensions.get::<Tokens>().map(|tokens| Cost::from(tokens.0))
        });
        let service = layer.layer(service_fn(move |request| {
            advance(&clock, Duration::from_secs(600));
            answer(request)
        }));
        service.oneshot(get(actual)).await.unwrap();
        assert_eq!(remaining(&limiter.into(), &tokens).await, remains, "{actual}");
    }
}

#[tokio::test]
async fn an_allow_listed_key_is_neither_refunded_nor_charged() {
    for charge in [true, false] {
        let (limiter, _) = stopped();
        let listed = api("2/h log").with_allow_list(["global"].into_iter().collect());
        let layer = layer(limiter.clone(), listed);
        let layer = if charge { layer.charge_if(|_| true) } else { layer.refund_if(|_| true) };
        let (service, _) = around(&layer);
        assert_eq!(statuses(&service, [get("/"), get("/"), get("/")]).await, [200; 3]);
        assert_eq!(remaining(&limiter.into(), &api("2/h log")).await, 2);
    }
}

/// A service that waits for a permit, and fails without a response on the path `/fail`.
fn slow(
    layer: &RateLimitLayer,
    permits: &Arc<Semaphore>,
) -> RateLimit<
    impl tower::Service<
        Request<()>,
        Response = Response<Full<Bytes>>,
        Error = &'static str,
        Future: Send,
    > + Clone
    + use<>,
> {
    let permits = Arc::clone(permits);
    layer.layer(service_fn(move |request: Request<()>| {
        let permits = Arc::clone(&permits);
        async move {
            permits.acquire().await.unwrap().forget();
            if request.uri().path() == "/fail" { Err("failed") } else { Ok(Response::default()) }
        }
    }))
}

/// A client that disconnects before it sees the response cannot avoid the charge.
#[tokio::test]
async fn a_client_that_disconnects_is_charged() {
    type Configure = fn(RateLimitLayer) -> RateLimitLayer;
    let configurations: [Configure; 4] = [
        |layer| layer,
        |layer| layer.refund_if(|_| true),
        |layer| layer.charge_if(|_| true),
        |layer| layer.settle(|_| Some(Cost::ZERO)),
    ];
    let (_server, limiters) = stores().await;
    for limiter in limiters {
        for (index, configure) in configurations.into_iter().enumerate() {
            let login = policy(&format!("login{index}"), "5/h log");
            let layer = configure(layer(limiter.clone(), login.clone()));
            let permits = Arc::new(Semaphore::new(0));
            let service = slow(&layer, &permits);
            let request = tokio::spawn(service.clone().oneshot(get("/")));
            tokio::time::sleep(Duration::from_millis(50)).await;
            request.abort();
            assert!(request.await.unwrap_err().is_cancelled());
            wait_until("the charge", async || remaining(&limiter, &login).await == 4).await;
            // So is a request that has no response because the service fails.
            permits.add_permits(1);
            assert_eq!(service.oneshot(get("/fail")).await.unwrap_err(), "failed");
            wait_until("the charge", async || remaining(&limiter, &login).await == 3).await;
        }
    }
}

/// Concurrent requests cannot exceed the limit before the first response.
#[tokio::test]
async fn concurrent_failures_never_exceed_a_limit_with_refunds() {
    let login = api("5/h log");
    let layer = layer(stopped().0, login).refund_if(|response| response.status.is_success());
    let (service, application) = around(&layer);
    let requests = (0..100).map(|_| {
        let service = service.clone();
        tokio::spawn(async move { send(&service, get("/status/401")).await.status.as_u16() })
    });
    let requests: Vec<_> = requests.collect();
    let mut failed = 0;
    for request in requests {
        failed += usize::from(request.await.unwrap() == 401);
    }
    assert_eq!((failed, application.calls()), (5, 5));
}

#[tokio::test]
async fn errors_after_the_decision_are_reported() {
    let server = Server::start();
    let limiter = redis(&server).await;
    let errors = Arc::new(std::sync::Mutex::new(Vec::new()));
    let reported = Arc::clone(&errors);
    let layer = layer(limiter, api("5/h"))
        .refund_if(|_| true)
        .on_error(move |error| reported.lock().unwrap().push(error.to_string()));
    let server = Arc::new(server);
    let stopped = Arc::clone(&server);
    let service = layer.layer(service_fn(move |_: Request<()>| {
        stopped.kill();
        std::future::ready(Ok::<_, Infallible>(Response::new(Full::<Bytes>::default())))
    }));
    let response = service.oneshot(get("/")).await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(errors.lock().unwrap().len(), 1, "{errors:?}");
}
