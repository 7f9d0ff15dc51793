//! What a client hears, and when.

use serde_json::Value;
use tollgate_testkit::GatewayKind;

use crate::stage::Stage;

/// Five pass and the sixth does not, and hears when to come back, in the headers and in the body.
pub(crate) fn come_at_the_exact_request(kind: GatewayKind) {
    let stage = Stage::of(kind);
    let mut client = stage.client(9);
    for _ in 0..5 {
        let answer = client.send("GET /login?x=1", &[], "");
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(answer.body, "reached GET /login?x=1");
        assert_eq!(answer.header("retry-after"), None, "{answer:?}");
    }
    for _ in 0..3 {
        let answer = client.send("GET /login?x=1", &[], "");
        assert_eq!(answer.status, 429, "{answer:?}");
        let wait: u64 = answer.header("retry-after").unwrap().parse().unwrap();
        assert!((3_500..=3_600).contains(&wait), "{answer:?}");
        let media = answer.header("content-type").unwrap();
        assert!(media.starts_with("application/problem+json"), "{answer:?}");
        let body: Value = serde_json::from_str(&answer.body).unwrap();
        assert_eq!(body["status"], 429, "{answer:?}");
        assert!(body["retry_after"].is_number(), "{answer:?}");
        assert!(!answer.body.contains("127.0.0"), "the key is told: {answer:?}");
    }
    assert_eq!(stage.reached(), 5);
    // Another path is another policy.
    assert_eq!(client.send("GET /", &[], "").status, 200);
}

/// What is left reaches the client whether a request passes or not, once.
pub(crate) fn say_what_is_left(kind: GatewayKind) {
    let stage = Stage::of(kind);
    let mut client = stage.client(9);
    for (left, status) in [4, 3, 2, 1, 0].map(|left| (left, 200)).into_iter().chain([(0, 429); 2]) {
        let answer = client.send("GET /login", &[], "");
        assert_eq!(answer.status, status, "{answer:?}");
        let policy = answer.header("ratelimit-policy");
        assert_eq!(policy, Some("\"login\";q=5;w=3600"), "{answer:?}");
        assert_eq!(answer.left(), Some(left), "{answer:?}");
    }
}

/// Who is out leaves another what is theirs.
pub(crate) fn count_each_client_alone(kind: GatewayKind) {
    let stage = Stage::of(kind);
    stage.spend(9);
    stage.spend(10);
    assert_eq!(stage.send(9, "GET /login", &[]).status, 429);
}

/// Methods without a body, with one, and unknown ones: what passes arrives whole, and all count.
pub(crate) fn reach_every_method(kind: GatewayKind) {
    let stage = Stage::of(kind);
    let mut client = stage.client(9);
    let body = "x".repeat(100_000);
    let rows = [("HEAD", ""), ("POST", "a=b"), ("PUT", &*body), ("DELETE", ""), ("PATCH", "{}")];
    for (method, body) in rows {
        let answer = client.send(&format!("{method} /login"), &[], body);
        assert_eq!(answer.status, 200, "{method}: {answer:?}");
        let [reached] = &stage.upstream.take()[..] else {
            panic!("{method} did not reach it once")
        };
        assert_eq!((&*reached.method, &*reached.uri), (method, "/login"));
        assert_eq!(reached.body, body.as_bytes(), "{method}");
    }
    for (method, body) in rows {
        // A gateway may close a connection whose body it has not read.
        let answer = stage.client(9).send(&format!("{method} /login"), &[], body);
        assert_eq!(answer.status, 429, "{method}: {answer:?}");
    }
    assert_eq!(stage.reached(), 0);
}

/// A 403, 429 or 5xx of the application is not taken for one of the daemon.
pub(crate) fn leave_the_applications_own_statuses(kind: GatewayKind) {
    let stage = Stage::of(kind);
    for status in [401, 403, 404, 429, 500, 502, 503] {
        let answer = stage.send(9, &format!("GET /status/{status}"), &[]);
        assert_eq!(answer.status, status, "{answer:?}");
        assert!(answer.body.starts_with("reached GET"), "{answer:?}");
        assert_eq!(stage.reached(), 1, "{status}");
    }
}
