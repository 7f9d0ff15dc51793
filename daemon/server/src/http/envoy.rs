//! `POST /json` and `/healthcheck`, as envoyproxy/ratelimit has them.

use hyper::body::Incoming;
use hyper::{Request, StatusCode};

use super::caller::{Bears, Caller};
use super::exchange::Exchange;
use super::problem::Problem;
use super::read_body;
use super::reply::{self, Reply};
use crate::daemon::Daemon;
use crate::listener::Remote;
use crate::rls::{self, Refusal, json};

/// `/healthcheck`: whether it wants requests.
pub(super) fn healthcheck(daemon: &Daemon) -> Reply {
    match *daemon.healthy().borrow() {
        true => reply::text(StatusCode::OK, "OK"),
        false => reply::text(StatusCode::INTERNAL_SERVER_ERROR, "not ready"),
    }
}

/// `POST /json`: a request of the rate limit service as JSON. What is wrong with it is told in two
/// words, which scripts look for; who may not ask is told so as everywhere.
pub(super) async fn limit(
    daemon: &Daemon,
    remote: &Remote,
    request: Request<Incoming>,
) -> Result<Reply, Problem> {
    let (head, body) = request.into_parts();
    let live = daemon.live();
    let caller = Caller::of(remote, &head.headers, Bears::Authorization, &live.access)
        .inspect_err(|_| daemon.failures.add(daemon.clock.now(), remote))?;
    let exchange = Exchange { daemon, live: &live, caller, record: None };
    let body = read_body(&exchange, body).await?;
    let Ok(request) = json::request(&body) else { return Ok(bad()) };
    match rls::answer(&exchange, &request).await {
        Ok(response) => Ok(reply::rate_limit(json::response(&response), response.overall_code())),
        Err(Refusal::Problem(problem)) if !problem.is_bad_input() => Err(problem),
        Err(_) => Ok(bad()),
    }
}

fn bad() -> Reply {
    reply::text(StatusCode::BAD_REQUEST, "Bad Request\n")
}
