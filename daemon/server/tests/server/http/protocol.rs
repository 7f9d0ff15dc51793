//! HTTP versions, persistent connections, rate limit headers, probes, and requests that may not
//! operate.

use hyper::{Request, Version};
use tokio::net::TcpStream;
use tollgate_daemon::{Config, HeaderStyle};

use crate::support::client::encode_request;
use crate::support::connect_http2;
use crate::support::daemon::{Daemon, POLICIES};

const CHECK: &str = r#"{"policy":"log","key":"a"}"#;

#[tokio::test]
async fn connections_stay_open_and_pipelined_requests_are_answered_in_order() {
    let daemon = Daemon::start().await;
    let mut client = daemon.connect().await;
    assert_eq!(client.post("/v1/check", CHECK).await.unwrap().status, 200);
    assert_eq!(client.post("/v1/check", "{").await.unwrap().status, 400);
    let pipeline = encode_request("POST", "/v1/check", "", CHECK).repeat(3);
    client.send(&pipeline).await.unwrap();
    for status in [200, 429, 429] {
        assert_eq!(client.read_response().await.unwrap().status, status);
    }
}

#[tokio::test]
async fn http2_with_prior_knowledge_is_served() {
    let daemon = Daemon::start().await;
    let stream = TcpStream::connect(daemon.address).await.unwrap();
    let (mut sender, _connection) = connect_http2(stream).await;
    let url = format!("http://{}/v1/check", daemon.address);
    let mut statuses = Vec::new();
    for _ in 0..3 {
        let request = Request::post(&url).body(CHECK.to_owned()).unwrap();
        let response = sender.send_request(request).await.unwrap();
        assert_eq!(response.version(), Version::HTTP_2);
        statuses.push(response.status().as_u16());
    }
    assert_eq!(statuses, [200, 200, 429]);
}

/// Requests of operators.
const OPERATIONS: [(&str, &str); 6] = [
    ("reset", CHECK),
    ("block", CHECK),
    ("unblock", CHECK),
    ("refund", CHECK),
    ("penalize", CHECK),
    ("peek", r#"{"limit":"1/s","key":"a"}"#),
];

#[tokio::test]
async fn loopback_may_operate_only_if_the_configuration_says_so() {
    let daemon = Daemon::start_unchanged(Config::from_yaml(POLICIES).unwrap()).await;
    for (operation, body) in OPERATIONS {
        let response = daemon.post(&format!("/v1/{operation}"), body).await;
        response.assert(403, "needs a token with the scope operate", operation);
        response.assert(403, "operators: loopback", operation);
    }
    assert_eq!(daemon.post("/v1/peek", CHECK).await.status, 200);
    let inspection = daemon.post("/v1/inspect", CHECK).await.body;
    assert!(inspection.contains(r#""block":null"#), "nothing was executed: {inspection}");
}

#[tokio::test]
async fn requests_of_proxies_and_web_pages_may_not_operate() {
    let daemon = Daemon::start().await;
    for header in ["", "x-forwarded-for: 10.0.0.1", "via: 1.1 proxy", "referer: http://localhost/"]
    {
        let (status, reason) = match header {
            "" => (200, ""),
            _ => (403, "is not accepted through a proxy, from a web page"),
        };
        for (operation, body) in OPERATIONS {
            let response = daemon.post_with(&format!("/v1/{operation}"), header, body).await;
            response.assert(status, reason, format_args!("{header} {operation}"));
        }
        let response = daemon.post_with("/v1/peek", header, CHECK).await;
        assert_eq!(response.status, 200, "every client may query a policy");
    }
}

#[tokio::test]
async fn probes_answer_ok_and_wrong_methods_list_the_allowed_ones() {
    let daemon = Daemon::start().await;
    let mut client = daemon.connect().await;
    for path in ["/livez", "/readyz"] {
        let response = client.get(path).await.unwrap();
        assert_eq!((response.status, &*response.body), (200, "ok\n"));
    }
    for (method, path, allow) in [
        ("PUT", "/v1/check", "POST"),
        ("DELETE", "/v1/peek", "GET, POST"),
        ("POST", "/livez", "GET, HEAD"),
    ] {
        let response = client.request(method, path, "").await.unwrap();
        assert_eq!((response.status, response.header("allow")), (405, Some(allow)));
    }
}

#[tokio::test]
async fn decisions_carry_rate_limit_headers() {
    let daemon = Daemon::start().await;
    let bucket = Some((r#""bucket";q=2;w=1"#, r#""bucket";r=1;t=1"#));
    for (path, body, expected) in [
        ("/v1/check", r#"{"policy":"bucket","key":"a"}"#, bucket),
        ("/v1/check", r#"{"policy":"bucket","key":"a","cost":2}"#, bucket),
        ("/v1/check?status=200", r#"{"policy":"bucket","key":"a","cost":2}"#, bucket),
        ("/v1/check", r#"{"policy":"bucket","key":"a","cost":3}"#, bucket),
        ("/v1/peek", r#"{"policy":"bucket","key":"a","cost":2}"#, bucket),
        ("/v1/take", r#"{"policy":"bucket","key":"b"}"#, bucket),
        ("/v1/reserve", r#"{"policy":"bucket","key":"c"}"#, bucket),
        (
            "/v1/acquire",
            r#"{"policy":"slots","key":"a"}"#,
            Some((r#""slots";q=2;qu="concurrent-requests""#, r#""slots";r=1;t=60"#)),
        ),
        (
            "/v1/check",
            r#"{"checks":[{"policy":"bucket","key":"d"},{"policy":"ghost","key":"d"},{"policy":"log","key":"d"}]}"#,
            Some((r#""bucket";q=2;w=1, "log";q=2;w=60"#, r#""bucket";r=1;t=1, "log";r=1;t=60"#)),
        ),
        ("/v1/check", r#"{"policy":"ghost","key":"a"}"#, None),
        ("/v1/check", r#"{"policy":"listed","key":"eve"}"#, None),
        // These are not decisions.
        ("/v1/refund", r#"{"policy":"bucket","key":"a"}"#, None),
        ("/v1/inspect", r#"{"policy":"bucket","key":"a"}"#, None),
        ("/v1/check", r#"{"policy":"bucket"}"#, None),
    ] {
        let response = daemon.post(path, body).await;
        let headers = response.header("ratelimit-policy").zip(response.header("ratelimit"));
        assert_eq!(headers, expected, "{path} {body}: {}", response.body);
        assert_eq!(response.header("x-ratelimit-limit"), None);
    }
}

#[tokio::test]
async fn headers_follow_the_configured_styles() {
    for (styles, expected) in [
        (&[][..], [None, None, None]),
        (&[HeaderStyle::LegacyEpoch][..], [None, None, Some("1763650001")]),
        (
            &[HeaderStyle::LegacyDelta, HeaderStyle::Draft11, HeaderStyle::Draft6],
            [Some(r#""bucket";r=1;t=1"#), Some("1"), Some("1")],
        ),
    ] {
        let daemon = Daemon::start_with_options(|config| config.headers = styles.to_vec()).await;
        let response = daemon.post("/v1/check", r#"{"policy":"bucket","key":"a"}"#).await;
        let names = ["ratelimit", "ratelimit-reset", "x-ratelimit-reset"];
        assert_eq!(names.map(|name| response.header(name)), expected, "{styles:?}");
    }
}
