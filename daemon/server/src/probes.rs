//! Probes: `/livez`, `/readyz` and `/healthcheck`.

use std::fmt::Write;

use hyper::{Method, Request, StatusCode};

use crate::services::Services;
use crate::store_watch::{describe_breaker, describe_outage};
use tollgate::{BreakerState, NodeStats};
use tollgate_engine::Remote;
use tollgate_envoy::xds::NoLimits;
use tollgate_http::{Reply, RequestHead, is_operator, method_not_allowed, problem_reply, text};
use tollgate_rules::query;

/// Answers `/livez` and `/readyz`.
pub(crate) async fn answer<B>(
    services: &Services,
    remote: &Remote,
    request: &Request<B>,
) -> Option<Reply> {
    let path = request.uri().path();
    if !matches!(path, "/livez" | "/readyz") {
        return None;
    }
    if let Some(reply) = reject_method(request) {
        return Some(reply);
    }
    Some(match path {
        "/livez" => text(StatusCode::OK, "ok\n"),
        _ => ready(services, remote, request).await,
    })
}

/// Answers `/healthcheck`, the health check of envoyproxy/ratelimit.
pub(crate) fn healthcheck<B>(services: &Services, request: &Request<B>) -> Reply {
    if let Some(reply) = reject_method(request) {
        return reply;
    }
    match *services.lifecycle.healthy().borrow() {
        true => text(StatusCode::OK, "OK"),
        false => text(StatusCode::INTERNAL_SERVER_ERROR, "not ready"),
    }
}

fn reject_method<B>(request: &Request<B>) -> Option<Reply> {
    if matches!(*request.method(), Method::GET | Method::HEAD) {
        return None;
    }
    let problem = method_not_allowed(request.method(), request.uri().path(), "GET, HEAD");
    Some(problem_reply(&problem))
}

/// Ready from when the limits are known until the daemon drains. `?verbose` adds a line for each
/// component. The store does not affect readiness: policies decide without it. Reasons, which may
/// contain addresses and paths, are for operators.
async fn ready<B>(services: &Services, remote: &Remote, request: &Request<B>) -> Reply {
    let is_draining = services.lifecycle.is_draining();
    let discovery = &services.envoy.discovery;
    let (status, word) = match (is_draining, discovery.check_limits()) {
        (true, _) => (StatusCode::SERVICE_UNAVAILABLE, "draining\n"),
        (false, Err(NoLimits)) => (StatusCode::SERVICE_UNAVAILABLE, "waiting for limits\n"),
        (false, Ok(())) => (StatusCode::OK, "ok\n"),
    };
    let query = request.uri().query().unwrap_or("").as_bytes();
    if !query::pairs(query).any(|(name, _)| &*name == b"verbose") {
        return text(status, word);
    }
    let head = RequestHead::new(request.method(), request.uri(), request.headers());
    let engine = &services.engine;
    let is_operator = is_operator(engine, &engine.active(), remote, head).await;
    let mut lines = String::new();
    let reason = |error: Option<String>| match error {
        Some(_) if !is_operator => Some("failed; operators see the reason".to_owned()),
        error => error,
    };
    let mut line = |name: &str, error: Option<&str>| {
        // Writing to a `String` cannot fail.
        let _ = match error {
            None => writeln!(lines, "[+] {name} ok"),
            Some(error) => writeln!(lines, "[-] {name}: {}", error.replace('\n', "\n    ")),
        };
    };
    line("requests", is_draining.then_some("draining"));
    line("store", reason(store_error(services)).as_deref());
    if let Some(error) = share_error(services) {
        line("share of limits", reason(Some(error)).as_deref());
    }
    let reload_error = services.reload_error.borrow().as_deref().map(str::to_owned);
    line("configuration", reason(reload_error).as_deref());
    if let Some(error) = discovery.error() {
        line("discovery", reason(error.as_deref().map(str::to_owned)).as_deref());
    }
    for warning in services.config_warnings.borrow().iter() {
        let warning = if is_operator { warning } else { "warning; operators see the reason" };
        // Writing to a `String` cannot fail.
        let _ = writeln!(lines, "[!] configuration: {warning}");
    }
    lines.push_str(word);
    text(status, lines)
}

/// Why this process has no share of the limits while the store is unavailable.
fn share_error(services: &Services) -> Option<String> {
    services.engine.limiter().as_redis()?;
    let stats = services.engine.limiter().stats();
    if stats.members.is_some() {
        return None;
    }
    Some(match stats.membership_failure {
        Some(failure) => format!("no heartbeat was written: {failure}"),
        None => "the store does not know this process for long enough".to_owned(),
    })
}

/// Why the store, or a node of several, is unavailable.
fn store_error(services: &Services) -> Option<String> {
    if let Some(problem) = services.engine.store_problem() {
        return Some(problem.as_ref().to_owned());
    }
    let nodes = services.engine.limiter().as_redis()?.nodes();
    // A store with one node is as available as that node.
    if nodes.len() > 1 { unavailable_nodes(&nodes) } else { None }
}

/// The nodes that are unavailable or get no checks, with the reason of each.
fn unavailable_nodes(nodes: &[NodeStats]) -> Option<String> {
    let describe = |node: &NodeStats| match node.breaker.state {
        _ if node.is_unavailable() => Some(describe_outage(node)),
        BreakerState::Open | BreakerState::HalfOpen => Some(describe_breaker(node)),
        BreakerState::Closed | BreakerState::Closing => None,
    };
    let lines: Vec<_> = nodes.iter().filter_map(describe).collect();
    let (count, all) = (lines.len(), nodes.len());
    let lines = lines.join("\n");
    (count > 0).then(|| format!("{count} of {all} nodes are unavailable\n{lines}"))
}
