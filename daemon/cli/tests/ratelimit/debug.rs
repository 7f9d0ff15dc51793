//! The debug port, and the metrics with the names of envoyproxy/ratelimit.

use std::process::Command;

use crate::basic::installation;
use crate::client;
use crate::installation::{get, send};
use crate::process::{output, read_repository};

#[tokio::test(flavor = "multi_thread")]
async fn debug_port_shows_limits_and_statistics() {
    let installation = installation();
    let ratelimit = installation.start(&[("BACKEND_TYPE", "memory")]);
    let mut client = client::connect(ratelimit.grpc()).await;
    client::call(&mut client, "basic +2 | key1=v").await;
    client::call(&mut client, "nowhere | key1=v").await;
    let index = ratelimit.debug("/");
    for page in ["/rlconfig: ", "/stats: ", "/metrics: "] {
        assert!(index.contains(page), "{index}");
    }
    let limits = ratelimit.debug("/rlconfig");
    assert!(limits.contains("basic.key1") && limits.contains("another.key3"), "{limits}");
    for (name, count) in [
        ("ratelimit.service.rate_limit.basic.key1.total_hits", 2),
        ("ratelimit.service.rate_limit.basic.key1.within_limit", 2),
        ("ratelimit.service.rate_limit.nowhere.domain_not_found", 1),
        ("ratelimit.service.config_load_success", 1),
        ("ratelimit_server.ShouldRateLimit.total_requests", 2),
    ] {
        assert_eq!(ratelimit.stat(name), count, "{}", ratelimit.debug("/stats"));
    }
    let debug = ratelimit.at("debug");
    assert_eq!(get(debug, "/debug/pprof/profile").0, 404);
    assert_eq!(get(debug, "/nothing").0, 404);
    assert_eq!(send(debug, "POST /rlconfig", "").0, 405);
    let metrics = ratelimit.debug("/metrics");
    assert!(metrics.contains("\ntollgate_build_info{"));
    let page = read_repository("docs/ratelimit.md");
    for line in metrics.lines().filter_map(|line| line.strip_prefix("# HELP ratelimit_")) {
        let name = format!("`ratelimit_{}`", line.split(' ').next().unwrap());
        assert!(page.contains(&name), "docs/ratelimit.md lacks {name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_have_the_names_of_envoyproxy_ratelimit() {
    let installation = installation();
    installation.limits(
        "deep.yaml",
        "domain: deep\ndescriptors:\n  - key: a\n    value: 10.0.0.1\n    descriptors:\n    - key: b\n      \
         detailed_metric: true\n      rate_limit: { unit: day, requests_per_unit: 1 }\n",
    );
    let ratelimit = installation.start(&[
        ("BACKEND_TYPE", "memory"),
        ("USE_STATSD", "false"),
        ("USE_PROMETHEUS", "true"),
        ("PROMETHEUS_ADDR", "127.0.0.1:0"),
        ("PROMETHEUS_PATH", "/stats/prometheus"),
    ]);
    let mut client = client::connect(ratelimit.grpc()).await;
    client::call(&mut client, "basic | key1=v").await;
    client::call(&mut client, "deep +2 | a=10.0.0.1 b=\"\\").await;
    client::call(&mut client, " | a=b").await;
    client::call(&mut client, "no\"where | a=b").await;
    let at = ratelimit.at("metrics");
    assert_eq!(get(at, "/metrics").0, 404);
    let (status, page) = get(at, "/stats/prometheus");
    assert_eq!(status, 200);
    for line in [
        "ratelimit_service_rate_limit_total_hits{domain=\"basic\",key1=\"key1\"} 1",
        "ratelimit_service_rate_limit_within_limit{domain=\"basic\",key1=\"key1\"} 1",
        "ratelimit_service_rate_limit_over_limit{domain=\"deep\",key1=\"a_10_0_0_1\",key2=\"b_\\\"\\\\\"} 1",
        "ratelimit_service_rate_limit_domain_not_found{domain=\"no\\\"where\"} 1",
        "ratelimit_service_should_rate_limit_error{err_type=\"service_error\"} 1",
        "ratelimit_service_should_rate_limit_error{err_type=\"redis_error\"} 0",
        "ratelimit_service_total_requests{grpc_method=\"ShouldRateLimit\"} 4",
        "ratelimit_service_response_time_seconds_count{grpc_method=\"ShouldRateLimit\"} 2",
        "ratelimit_service_config_load_success 1",
        "ratelimit_service_config_load_error 0",
    ] {
        assert!(page.contains(&format!("\n{line}\n")), "no {line} in\n{page}");
    }
    assert_promtool_accepts(&page);
}

/// Checks a page with promtool of the Debian package `prometheus`.
fn assert_promtool_accepts(page: &str) {
    let mut command = Command::new("promtool");
    let (code, printed, error) = output(command.args(["check", "metrics"]), page.as_bytes());
    assert_eq!(code, 0, "{printed}{error}");
}
