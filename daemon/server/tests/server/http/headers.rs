//! Rate limit headers on responses to decisions.

use tollgate_server::HeaderStyle;

use crate::support::daemon::Daemon;

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
