//! Denials, and the headers of responses.

use serde_json::Value;
use tollgate_testkit::GatewayKind;

use crate::setup::Setup;

/// Denials contain the retry time in a header and in the body, and do not contain the key.
pub(crate) fn sixth_request_is_denied_with_retry_after(kind: GatewayKind) {
    let setup = Setup::new(kind);
    let mut client = setup.client(9);
    for _ in 0..5 {
        let response = client.send("GET /login?x=1", &[], "");
        assert_eq!(response.status, 200, "{response:?}");
        assert_eq!(response.body, "reached GET /login?x=1");
        assert_eq!(response.header("retry-after"), None, "{response:?}");
    }
    for _ in 0..3 {
        let response = client.send("GET /login?x=1", &[], "");
        assert_eq!(response.status, 429, "{response:?}");
        let wait: u64 = response.header("retry-after").unwrap().parse().unwrap();
        assert!((3_500..=3_600).contains(&wait), "{response:?}");
        let media = response.header("content-type").unwrap();
        assert!(media.starts_with("application/problem+json"), "{response:?}");
        let body: Value = serde_json::from_str(&response.body).unwrap();
        assert_eq!(body["status"], 429, "{response:?}");
        assert!(body["retry_after"].is_number(), "{response:?}");
        assert!(!response.body.contains("127.0.0"), "the response contains the key: {response:?}");
    }
    assert_eq!(setup.reached(), 5);
    // Another path has another policy.
    assert_eq!(client.send("GET /", &[], "").status, 200);
}

/// Admitted and denied responses contain each header once. Traefik drops those of admissions.
pub(crate) fn responses_contain_remaining_requests(kind: GatewayKind) {
    let setup = Setup::new(kind);
    let mut client = setup.client(9);
    for (remaining, status) in
        [4, 3, 2, 1, 0].map(|remaining| (remaining, 200)).into_iter().chain([(0, 429); 2])
    {
        let response = client.send("GET /login", &[], "");
        assert_eq!(response.status, status, "{response:?}");
        if kind == GatewayKind::Traefik && status == 200 {
            assert_eq!((response.header("ratelimit-policy"), response.remaining()), (None, None));
            continue;
        }
        let policy = response.header("ratelimit-policy");
        assert_eq!(policy, Some("\"login\";q=5;w=3600"), "{response:?}");
        assert_eq!(response.remaining(), Some(remaining), "{response:?}");
    }
}

pub(crate) fn clients_are_limited_separately(kind: GatewayKind) {
    let setup = Setup::new(kind);
    setup.spend(9);
    setup.spend(10);
    assert_eq!(setup.send(9, "GET /login", &[]).status, 429);
}

/// Admitted requests arrive with their body.
pub(crate) fn every_method_is_forwarded_and_limited(kind: GatewayKind) {
    let setup = Setup::new(kind);
    let mut client = setup.client(9);
    let body = "x".repeat(100_000);
    let rows = [("HEAD", ""), ("POST", "a=b"), ("PUT", &*body), ("DELETE", ""), ("PATCH", "{}")];
    for (method, body) in rows {
        let response = client.send(&format!("{method} /login"), &[], body);
        assert_eq!(response.status, 200, "{method}: {response:?}");
        let [reached] = &setup.upstream.take()[..] else { panic!("{method} did not arrive once") };
        assert_eq!((&*reached.method, &*reached.uri), (method, "/login"));
        assert_eq!(reached.body, body.as_bytes(), "{method}");
    }
    for (method, body) in rows {
        // A gateway may close a connection whose body it has not read.
        let response = setup.client(9).send(&format!("{method} /login"), &[], body);
        assert_eq!(response.status, 429, "{method}: {response:?}");
    }
    assert_eq!(setup.reached(), 0);
}

/// The gateway does not mistake a 403, 429 or 5xx of the application for a response of the daemon.
pub(crate) fn statuses_of_the_application_are_unchanged(kind: GatewayKind) {
    let setup = Setup::new(kind);
    for status in [401, 403, 404, 429, 500, 502, 503] {
        let response = setup.send(9, &format!("GET /status/{status}"), &[]);
        assert_eq!(response.status, status, "{response:?}");
        assert!(response.body.starts_with("reached GET"), "{response:?}");
        assert_eq!(setup.reached(), 1, "{status}");
    }
}
