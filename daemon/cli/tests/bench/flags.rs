//! Invalid arguments are rejected with the value and an alternative.

use crate::tool::bench;

#[test]
fn invalid_arguments_are_rejected_with_an_alternative() {
    let check = |words: &str, parts: &[&str]| {
        let (code, _, error) = bench(words);
        assert_eq!(code, 2, "{words}: {error}");
        parts.iter().for_each(|part| assert!(error.contains(part), "{part:?} of {words}: {error}"));
    };
    check("ftp://host", &["\"ftp://host\"", "redis://HOST:PORT"]);
    check("https://host", &["TLS"]);
    check("http://host --host other", &["--host", "once"]);
    check("memory --limit 10/parsec", &["--limit", "10/parsec"]);
    check("memory --policy api", &["--policy \"api\"", "--limit"]);
    check("http --policy 10/s", &["--policy \"10/s\"", "--limit"]);
    check("grpc", &["--policy"]);
    check("http --threshold 5", &["--threshold 5", "redis://HOST:PORT"]);
    check("http --command throttle", &["--command throttle", "redis://"]);
    check("http --pipeline 4", &["--pipeline 4", "--concurrency"]);
    check("redis --command throttle --limit \"10/s log\"", &["\"10/s log\"", "token bucket"]);
    check("redis --command throttle --limit 10/500ms", &["10/500ms", "whole seconds"]);
    check("redis --threshold 5 --cost 2", &["--cost 2"]);
    check("redis --threshold 5 --limit 10/s", &["--threshold", "--limit"]);
    check("memory --zipf 0", &["--zipf", "above 0"]);
    check("memory --keys 0", &["--keys", "0"]);
    check("memory --rate 0", &["--rate"]);
    check("memory --duration 2d", &["--duration", "at most 1d"]);
    check("memory --duration 5", &["--duration", "5"]);
    check("memory --timeout 2h", &["--timeout", "at most 1h"]);
    check("memory --against 5/s", &["--verify"]);
    check("memory --concurrency 1000", &["--concurrency 1000", "256"]);
    check("memory --cost 18446744073709551615", &["--cost 18446744073709551615", "at most"]);
}
