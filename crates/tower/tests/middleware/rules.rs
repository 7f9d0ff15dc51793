//! Several rules, costs, tiers, and what the handler sees.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};

use http::{Request, Response};
use tollgate::{Cost, Key, MemoryLimiter, Overrides, Policies, Tiers};
use tollgate_tower::{
    Admission, ClientRateLimitLayer, Fallback, KeyExtractor, RateLimitLayer, Rule,
};
use tower::{Layer, Service, ServiceExt, service_fn};

use crate::support::{
    Application, advance, api, around, get, policy, send, statuses, stopped, with_headers,
};

fn key(name: &str) -> Key<'_> {
    Key::new(name).unwrap()
}

/// Chained limiters charge the wide limit although the narrow one denies (Symfony's compound limiter,
/// rate-limiter-flexible's union, flask-limiter).
#[tokio::test]
async fn a_denial_by_one_rule_charges_no_rule() {
    let (limiter, _) = stopped();
    let (wide, narrow) = (policy("wide", "10/min"), policy("narrow", "1/min"));
    for rules in [[wide.clone(), narrow.clone()], [narrow.clone(), wide.clone()]] {
        let (limiter, _) = stopped();
        let rules = rules.map(|policy| Rule::new(policy, KeyExtractor::global()));
        let (service, application) = around(&RateLimitLayer::with_rules(limiter.clone(), rules));
        assert_eq!(statuses(&service, [get("/"), get("/"), get("/")]).await, [200, 429, 429]);
        assert_eq!(limiter.peek(&wide, key("global"), Cost::ONE).remaining, 9);
        assert_eq!(application.calls(), 1);
    }
    // A refused request charges nothing either.
    let rules = [
        Rule::new(wide.clone(), KeyExtractor::global()),
        Rule::new(narrow, KeyExtractor::header("x-key")),
    ];
    let (service, _) = around(&RateLimitLayer::with_rules(limiter.clone(), rules));
    assert_eq!(statuses(&service, [get("/")]).await, [400]);
    assert_eq!(limiter.peek(&wide, key("global"), Cost::ONE).remaining, 10);
}

/// Some limiters charge a denied cost, or state when one unit fits instead of the cost (Upstash,
/// Concurrent Policies of .NET).
#[tokio::test]
async fn a_cost_that_does_not_fit_is_not_charged_and_retry_after_is_for_that_cost() {
    let (limiter, clock) = stopped();
    let cost = |head: &http::request::Parts| {
        let cost = head.headers.get("x-cost").unwrap().to_str().unwrap().parse::<u32>();
        cost.map(Cost::from)
    };
    let rule = Rule::new(api("10/10s burst 10"), KeyExtractor::global()).try_cost(cost);
    let (service, _) = around(&RateLimitLayer::with_rules(limiter, [rule]));
    let request = |cost: &str| with_headers(&[&format!("x-cost: {cost}")]);
    assert_eq!(send(&service, request("9")).await.status, 200);
    let denied = send(&service, request("5")).await;
    assert_eq!((denied.status.as_u16(), denied.header("retry-after")), (429, Some("4")));
    assert_eq!(denied.header("ratelimit"), Some(r#""api";r=1;t=4"#));
    assert_eq!(send(&service, request("1")).await.status, 200);
    advance(&clock, std::time::Duration::from_secs(5));
    assert_eq!(statuses(&service, [request("5"), request("1")]).await, [200, 429]);
    // A cost that cannot be read is a bad request.
    assert_eq!(statuses(&service, [request("many"), request("-1")]).await, [400, 400]);
    // A cost of 0 is not charged.
    assert_eq!(statuses(&service, [request("0"), request("0")]).await, [200, 200]);
}

#[tokio::test]
async fn tiers_and_overrides_select_the_limits() {
    #[derive(Clone)]
    struct Plan(&'static str);

    let mut policies = Policies::new();
    policies.define("api", "1/min").unwrap();
    let mut tiers = Tiers::new();
    tiers.add("pro", "3/min").unwrap();
    policies.set_tiers("api", &tiers).unwrap();
    let mut overrides = Overrides::builder();
    overrides.add("vip", "2/min").unwrap();
    policies.set_overrides("api", &overrides.build()).unwrap();
    let policies = Arc::new(policies);
    let rule = Rule::named(Arc::clone(&policies), "api", KeyExtractor::header("x-key")).unwrap();
    let rule = rule.tier(|head| head.extensions.get::<Plan>().map(|plan| plan.0.to_owned()));
    let (service, _) = around(&RateLimitLayer::with_rules(stopped().0, [rule]));
    let request = |key: &str, plan: Option<&'static str>| {
        let mut request = with_headers(&[&format!("x-key: {key}")]);
        if let Some(plan) = plan {
            request.extensions_mut().insert(Plan(plan));
        }
        request
    };
    for (key, plan, expected) in [
        ("ann", None, [200, 429, 429, 429]),
        ("bob", Some("pro"), [200, 200, 200, 429]),
        ("vip", None, [200, 200, 429, 429]),
        ("eve", Some("gold"), [400, 400, 400, 400]),
    ] {
        let requests = (0..4).map(|_| request(key, plan));
        assert_eq!(statuses(&service, requests).await, expected, "{key}");
    }
    // An unknown policy is found when the server starts.
    let error = Rule::named(policies, "apj", KeyExtractor::global()).unwrap_err();
    assert!(error.to_string().contains("did you mean \"api\""), "{error}");
}

#[tokio::test]
async fn a_function_selects_the_policy() {
    let (get_policy, post_policy) = (policy("get", "2/min"), policy("post", "1/min"));
    let rule = Rule::from_fn(
        move |head| match head.method.as_str() {
            "GET" => Ok(get_policy.clone()),
            "POST" => Ok(post_policy.clone()),
            other => Err(format!("no policy for {other}")),
        },
        KeyExtractor::global(),
    );
    let (service, _) = around(&RateLimitLayer::with_rules(stopped().0, [rule]));
    let request = |method: &str| Request::builder().method(method).body(()).unwrap();
    let requests = ["GET", "POST", "GET", "POST", "GET", "PUT"].map(request);
    assert_eq!(statuses(&service, requests).await, [200, 200, 200, 429, 429, 400]);
}

#[tokio::test]
async fn skipped_requests_reach_the_service_unchecked() {
    let rule = Rule::new(api("1/min"), KeyExtractor::global())
        .skip_if(|head| head.uri.path() == "/health");
    let (service, application) = around(&RateLimitLayer::with_rules(stopped().0, [rule]));
    assert_eq!(statuses(&service, [get("/health"), get("/"), get("/")]).await, [200, 200, 429]);
    let reply = send(&service, get("/health")).await;
    assert_eq!((reply.status.as_u16(), reply.header("ratelimit")), (200, None));
    assert_eq!(application.calls(), 3);
}

#[tokio::test]
async fn fallbacks_decide_about_requests_without_a_key() {
    let invalid = || KeyExtractor::try_from_fn(|_| Err::<Option<String>, _>("broken"));
    let rule = |key: KeyExtractor| Rule::new(api("1/min"), key);
    let key = |name: &str| Fallback::Key(name.into());
    for (rule, expected) in [
        (rule(KeyExtractor::header("x-key")), [400, 400]),
        (rule(KeyExtractor::header("x-key")).on_missing(Fallback::Skip), [200, 200]),
        (rule(KeyExtractor::header("x-key")).on_missing(key("anonymous")), [200, 429]),
        // The other fallback does not apply.
        (rule(KeyExtractor::header("x-key")).on_invalid(Fallback::Skip), [400, 400]),
        (rule(invalid()), [400, 400]),
        (rule(invalid()).on_invalid(Fallback::Skip), [200, 200]),
        (rule(invalid()).on_invalid(key("broken")), [200, 429]),
        (rule(invalid()).on_missing(Fallback::Skip), [400, 400]),
        // A shared key that is empty is invalid too.
        (rule(KeyExtractor::header("x-key")).on_missing(key("")), [400, 400]),
    ] {
        let described = format!("{rule:?}");
        let (service, _) = around(&RateLimitLayer::with_rules(stopped().0, [rule]));
        assert_eq!(statuses(&service, [get("/"), get("/")]).await, expected, "{described}");
    }
    // What the client is told does not contain the error.
    let (service, _) = around(&RateLimitLayer::with_rules(stopped().0, [rule(invalid())]));
    let refused = send(&service, get("/")).await;
    assert_eq!(refused.header("content-type"), Some("application/problem+json"));
    assert!(!refused.body.contains("broken"), "{}", refused.body);
    let grpc = send(&service, with_headers(&["content-type: application/grpc"])).await;
    assert_eq!((grpc.status.as_u16(), grpc.header("grpc-status")), (200, Some("3")));
}

#[tokio::test]
async fn handler_sees_the_decisions_of_all_layers() {
    let (limiter, _) = stopped();
    let layer = |name, limits| {
        RateLimitLayer::new(limiter.clone(), policy(name, limits), KeyExtractor::global())
    };
    let handler = service_fn(|request: Request<()>| async move {
        let admission = request.extensions().get::<Admission>().unwrap();
        let text: Vec<_> = admission
            .decisions()
            .map(|(policy, decision)| format!("{}={}", policy.name(), decision.remaining))
            .collect();
        assert!(!admission.is_degraded() && admission.delay().is_zero());
        let text = format!("{} {:?}", text.join(","), admission.remaining());
        Ok::<_, Infallible>(Response::new(http_body_util::Full::<bytes::Bytes>::from(text)))
    });
    let service = layer("outer", "5/min").layer(layer("inner", "9/min").layer(handler));
    let reply = crate::support::Reply::from(service.oneshot(get("/")).await.unwrap()).await;
    assert_eq!(reply.body, "outer=4,inner=8 Some(4)");
}

/// Two middlewares that share a store count each request twice (express-rate-limit warns with
/// `ERR_ERL_DOUBLE_COUNT`).
#[tokio::test]
async fn a_check_that_an_outer_layer_has_made_is_not_charged_again() {
    let (limiter, _) = stopped();
    let layer = |limiter: &MemoryLimiter, name| {
        RateLimitLayer::new(limiter.clone(), policy(name, "9/min"), KeyExtractor::global())
    };
    let remaining = |limiter: &MemoryLimiter, name| {
        limiter.peek(&policy(name, "9/min"), key("global"), Cost::ONE).remaining
    };
    let twice = layer(&limiter, "api").layer(layer(&limiter, "api").layer(Application::default()));
    let response = twice.oneshot(get("/")).await.unwrap();
    assert_eq!(remaining(&limiter, "api"), 8);
    assert_eq!(response.headers().get_all("ratelimit").iter().count(), 1);
    // Another policy, and the same policy in another store, are other checks.
    let other = MemoryLimiter::new();
    let several = layer(&limiter, "a")
        .layer(layer(&limiter, "b").layer(layer(&other, "a").layer(Application::default())));
    several.oneshot(get("/")).await.unwrap();
    assert_eq!(
        [remaining(&limiter, "a"), remaining(&limiter, "b"), remaining(&other, "a")],
        [8; 3]
    );
}

/// The trap of cloned services: `poll_ready` may have reserved something in the service that it was
/// called on, and its clone is not ready.
#[tokio::test]
async fn only_a_service_that_was_ready_is_called() {
    #[derive(Debug)]
    struct NeedsReady {
        is_ready: bool,
        ready: Arc<AtomicUsize>,
        was_called: Arc<AtomicBool>,
    }
    impl Clone for NeedsReady {
        fn clone(&self) -> Self {
            let (ready, was_called) = (Arc::clone(&self.ready), Arc::clone(&self.was_called));
            NeedsReady { is_ready: false, ready, was_called }
        }
    }
    impl Drop for NeedsReady {
        fn drop(&mut self) {
            if self.is_ready {
                self.ready.fetch_sub(1, Ordering::SeqCst);
            }
        }
    }
    impl Service<Request<()>> for NeedsReady {
        type Response = Response<http_body_util::Full<bytes::Bytes>>;
        type Error = Infallible;
        type Future = std::future::Ready<Result<Self::Response, Infallible>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
            if !self.is_ready {
                self.is_ready = true;
                self.ready.fetch_add(1, Ordering::SeqCst);
            }
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, _: Request<()>) -> Self::Future {
            assert!(self.is_ready, "call without poll_ready");
            self.is_ready = false;
            self.ready.fetch_sub(1, Ordering::SeqCst);
            self.was_called.store(true, Ordering::SeqCst);
            std::future::ready(Ok(Response::default()))
        }
    }

    let ready = Arc::new(AtomicUsize::new(0));
    let was_called = Arc::new(AtomicBool::new(false));
    let inner = NeedsReady {
        is_ready: false,
        ready: Arc::clone(&ready),
        was_called: Arc::clone(&was_called),
    };
    let layer = RateLimitLayer::new(stopped().0, api("2/min"), KeyExtractor::global());
    let mut service = layer.layer(inner);
    for expected in [true, true, false] {
        was_called.store(false, Ordering::SeqCst);
        let response = service.ready().await.unwrap().call(get("/"));
        assert_eq!(
            ready.load(Ordering::SeqCst),
            1,
            "the inner service is ready before the decision"
        );
        response.await.unwrap();
        assert_eq!(was_called.load(Ordering::SeqCst), expected);
        // A denial gives back what `poll_ready` reserved.
        assert_eq!(ready.load(Ordering::SeqCst), 0);
    }
    // The same with a service that waits for permits.
    let layer = RateLimitLayer::new(stopped().0, api("1/min"), KeyExtractor::global());
    let limited = tower::limit::ConcurrencyLimit::new(Application::default(), 1);
    let mut service = layer.layer(limited);
    for status in [200, 429, 429] {
        let service = ServiceExt::<Request<()>>::ready(&mut service).await.unwrap();
        let response = service.call(get("/")).await.unwrap();
        assert_eq!(response.status(), status);
    }
}

#[tokio::test]
async fn policies_without_a_name_are_refused_with_the_way_to_name_them() {
    let unnamed = || "5/h".parse::<tollgate::Policy>().unwrap();
    let expected = r#"has no name, so that it would count together with every policy of the same limits; create it with Policy::named("NAME", "5/h"), or add .with_name("NAME")?"#;
    let build: [fn(tollgate::Policy); 3] = [
        |policy| drop(Rule::new(policy, KeyExtractor::global())),
        |policy| drop(RateLimitLayer::new(MemoryLimiter::new(), policy, KeyExtractor::global())),
        |policy| drop(ClientRateLimitLayer::new(MemoryLimiter::new(), policy)),
    ];
    for build in build {
        let panic = std::panic::catch_unwind(|| build(unnamed())).unwrap_err();
        let message = panic.downcast_ref::<String>().unwrap();
        assert!(message.contains(expected), "{message}");
        build(unnamed().with_name("login").unwrap());
    }
    let rule = Rule::from_fn(move |_| Ok::<_, Infallible>(unnamed()), KeyExtractor::global());
    let rule = rule.on_invalid(Fallback::Skip);
    let layer = RateLimitLayer::with_rules(MemoryLimiter::new(), [rule]).map_rejection(
        move |rejection, _, response| {
            assert!(rejection.to_string().contains(expected), "{rejection}");
            response
        },
    );
    let (service, application) = around(&layer);
    assert_eq!(statuses(&service, [get("/")]).await, [400]);
    assert_eq!(application.calls(), 0);
}
