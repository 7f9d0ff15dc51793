//! Denials: status, headers and bodies.

use std::time::Duration;

use http::{Request, StatusCode};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tollgate::{Cost, Limiter, Policy};
use tollgate_tower::{BodyFormat, HeaderStyle, KeyExtractor, RateLimitLayer, Rejection, Rule};
use tower::{Layer, ServiceExt};

use crate::support::{
    Application, advance, api, around, get, policy, send, statuses, stopped, with_headers,
};

fn layer(limiter: impl Into<Limiter>, policy: Policy) -> RateLimitLayer {
    RateLimitLayer::new(limiter, policy, KeyExtractor::global())
}

#[tokio::test]
async fn denial_is_a_response_with_the_wait_and_the_limits() {
    let (service, application) = around(&layer(stopped().0, api("2/min burst 2")));
    let first = send(&service, get("/")).await;
    assert_eq!((first.status, &*first.body), (StatusCode::OK, "reached"));
    assert_eq!(first.header("ratelimit-policy"), Some(r#""api";q=2;w=60"#));
    assert_eq!(first.header("ratelimit"), Some(r#""api";r=1;t=30"#));
    assert_eq!(first.header("retry-after"), None);
    assert_eq!(send(&service, get("/")).await.status, StatusCode::OK);

    let denied = send(&service, get("/")).await;
    assert_eq!(denied.status, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(denied.header("retry-after"), Some("30"));
    assert_eq!(denied.header("ratelimit"), Some(r#""api";r=0;t=30"#));
    assert_eq!(denied.header("content-type"), Some("application/problem+json"));
    let body: Value = serde_json::from_str(&denied.body).unwrap();
    let expected = json!({
        "type": "https://iana.org/assignments/http-problem-types#quota-exceeded",
        "title": "The quota is exceeded",
        "status": 429,
        "detail": "try again in 30 s",
        "violated-policies": ["api"],
        "retry_after": 30,
    });
    assert_eq!(body, expected);
    assert_eq!(application.calls(), 2, "a denied request does not reach the service");
}

/// `tower_governor` rounds `Retry-After` down, to 0 in the last second, and reads "5 per second" as one
/// request every 5 seconds.
#[tokio::test]
async fn retry_after_is_rounded_up_and_true() {
    for (limits, wait) in [("5/s burst 1", 1), ("10/s burst 1", 1), ("2/3s burst 1", 2)] {
        let (limiter, clock) = stopped();
        let (service, _) = around(&layer(limiter, api(limits)));
        assert_eq!(statuses(&service, [get("/")]).await, [200], "{limits}");
        let denied = send(&service, get("/")).await;
        assert_eq!(denied.status, StatusCode::TOO_MANY_REQUESTS, "{limits}");
        assert_eq!(denied.header("retry-after"), Some(&*wait.to_string()), "{limits}");
        advance(&clock, Duration::from_secs(wait));
        assert_eq!(statuses(&service, [get("/")]).await, [200], "{limits} after {wait} s");
    }
    // Five requests a second, not one every five seconds; and not one more.
    let (limiter, clock) = stopped();
    let (service, application) = around(&layer(limiter, api("5/s burst 1")));
    for _ in 0..1_000 {
        send(&service, get("/")).await;
        advance(&clock, Duration::from_millis(1));
    }
    assert_eq!(application.calls(), 5);
}

/// Middlewares that count denied requests, such as actix-limitation, never admit a client that keeps
/// sending.
#[tokio::test]
async fn denied_requests_are_not_counted() {
    for limits in ["1/s", "1/s fixed", "1/s log", "1/s sliding by 100ms"] {
        let (limiter, clock) = stopped();
        let (service, application) = around(&layer(limiter, api(limits)));
        for _ in 0..40 {
            send(&service, get("/")).await;
            advance(&clock, Duration::from_millis(100));
        }
        assert!((4..=5).contains(&application.calls()), "{limits}: {}", application.calls());
    }
}

#[tokio::test]
async fn a_cost_above_the_capacity_has_no_retry_after() {
    let rule = Rule::new(api("5/min"), KeyExtractor::global()).cost(|_| Cost::from(6));
    let (service, _) = around(&RateLimitLayer::with_rules(stopped().0, [rule]));
    let denied = send(&service, get("/")).await;
    assert_eq!(denied.status, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(denied.header("retry-after"), None);
    assert!(denied.body.contains("waiting does not help"), "{}", denied.body);
}

#[tokio::test]
async fn blocked_and_deny_listed_keys_are_denied_without_a_quota() {
    let (limiter, _) = stopped();
    let listed = api("5/min").with_deny_list(["global"].into_iter().collect());
    let (service, application) = around(&layer(limiter.clone(), listed));
    let denied = send(&service, get("/")).await;
    assert_eq!(denied.status, StatusCode::TOO_MANY_REQUESTS);
    assert!(denied.body.contains("about:blank"), "{}", denied.body);

    let blocked = policy("blocked", "5/min");
    assert!(limiter.block(&blocked, "global", Some(Duration::from_secs(90))).changed);
    let (service, _) = around(&layer(limiter, blocked));
    let denied = send(&service, get("/")).await;
    assert_eq!(denied.status, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(denied.header("retry-after"), Some("90"));
    assert_eq!(application.calls(), 0);
}

#[tokio::test]
async fn header_styles_and_text_bodies_are_options() {
    let layer = layer(stopped().0, api("1/min"))
        .headers([HeaderStyle::LegacyDelta])
        .body_format(BodyFormat::Text);
    let (service, _) = around(&layer);
    let first = send(&service, get("/")).await;
    assert_eq!(first.header("x-ratelimit-limit"), Some("1"));
    assert_eq!(first.header("x-ratelimit-remaining"), Some("0"));
    assert_eq!(first.header("x-ratelimit-reset"), Some("60"));
    assert_eq!(first.header("ratelimit"), None);
    let denied = send(&service, get("/")).await;
    assert_eq!(denied.header("x-ratelimit-reset"), Some("60"));
    assert_eq!(denied.header("content-type"), Some("text/plain; charset=utf-8"));
    assert_eq!(denied.body, "try again in 60 s\n");

    let (service, _) = around(&layer.headers([]));
    let denied = send(&service, get("/")).await;
    assert_eq!(denied.header("x-ratelimit-limit"), None);
    assert_eq!(denied.header("retry-after"), Some("60"));
}

#[tokio::test]
async fn response_to_a_rejection_can_be_replaced() {
    let layer = layer(stopped().0, api("1/min")).map_rejection(|rejection, head, mut response| {
        let Rejection::Denied(denial) = rejection else { panic!("{rejection}") };
        let denied: Vec<_> = denial
            .denied()
            .map(|(policy, key, decision)| {
                format!("{} {} {}", policy.name(), key.escape_ascii(), decision.reason.as_str())
            })
            .collect();
        let wait = denial.retry_after().unwrap().as_secs();
        *response.body_mut() = format!("{} {denied:?} {wait}", head.uri).into();
        *response.status_mut() = StatusCode::IM_A_TEAPOT;
        response
    });
    let (service, _) = around(&layer);
    send(&service, get("/")).await;
    let denied = send(&service, get("/a?b")).await;
    assert_eq!(
        (denied.status, &*denied.body),
        (StatusCode::IM_A_TEAPOT, "/a?b [\"api global limit\"] 60")
    );
    assert_eq!(denied.header("retry-after"), Some("60"));
}

#[tokio::test]
async fn shadow_policy_admits_without_headers() {
    let (service, application) = around(&layer(stopped().0, api("1/min").shadow()));
    for _ in 0..5 {
        let reply = send(&service, get("/")).await;
        assert_eq!(reply.status, StatusCode::OK);
        assert_eq!(reply.header("ratelimit"), None);
    }
    assert_eq!(application.calls(), 5);
}

#[tokio::test]
async fn grpc_requests_get_a_status_and_the_wait() {
    let (service, application) = around(&layer(stopped().0, api("1/min burst 1")));
    let call = || with_headers(&["content-type: application/grpc+proto"]);
    send(&service, call()).await;
    let response = service.clone().oneshot(call()).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    let headers = response.headers().clone();
    assert_eq!(headers["content-type"], "application/grpc+proto");
    assert_eq!(headers["grpc-status"], "8");
    assert_eq!(headers["grpc-message"], "try again in 60 s");
    assert_eq!(headers["retry-after"], "60");
    assert!(headers.contains_key("grpc-status-details-bin"));
    // Neither data nor trailers: the headers are the trailers.
    assert!(response.into_body().frame().await.is_none());
    assert_eq!(application.calls(), 1);
}

#[tokio::test]
async fn headers_of_an_inner_layer_are_kept() {
    let (limiter, _) = stopped();
    let outer = layer(limiter.clone(), policy("outer", "100/min"));
    let inner = layer(limiter, policy("inner", "1/min"));
    let styles = [HeaderStyle::Draft11, HeaderStyle::LegacyDelta];
    let service = outer.headers(styles).layer(inner.headers(styles).layer(Application::default()));
    for (status, remaining) in [(200, ["0", "99"]), (429, ["0", "98"])] {
        let response = service.clone().oneshot(Request::new(())).await.unwrap();
        assert_eq!(response.status(), status);
        let lists: Vec<_> = response.headers().get_all("ratelimit").iter().collect();
        let [inner, outer] = remaining;
        assert!(lists[0].to_str().unwrap().starts_with(&format!("\"inner\";r={inner}")));
        assert!(lists[1].to_str().unwrap().starts_with(&format!("\"outer\";r={outer}")));
        // The headers that describe one limit are those of the inner layer.
        let limits: Vec<_> = response.headers().get_all("x-ratelimit-limit").iter().collect();
        assert_eq!(limits, ["1"]);
    }
}
