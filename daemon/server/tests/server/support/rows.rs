//! Row files: requests to one daemon, in order, with the expected responses.

use tollgate::Micros;

use super::daemon::Daemon;
use crate::openapi;

/// The fields of an ordinary decision, abbreviated as `~`.
const ORDINARY: &str = r#""source":"store","degraded":false,"replayed":false"#;
/// Ids of leases and reservations.
const A: &str = "0000000000000000000000000000000a";
const B: &str = "0000000000000000000000000000000b";

fn expand(text: &str) -> String {
    text.replace('~', ORDINARY).replace("{A}", A).replace("{B}", B)
}

/// Sends the requests of the rows and compares the responses. Returns the number of requests.
pub(crate) async fn check_all(daemon: &Daemon, rows: &str) -> usize {
    let rows = rows.lines().enumerate();
    let mut rows = rows.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let mut checked = 0;
    while let Some((line, request)) = rows.next() {
        if let Some(micros) = request.strip_prefix("+ ") {
            daemon.clock.advance(Micros::new(micros.parse().unwrap()));
            continue;
        }
        let status = rows.next().unwrap().1.strip_prefix("< ").unwrap();
        let json = expand(rows.next().unwrap().1);
        check(daemon, &format!("line {}: {request}", line + 1), request, status, &json).await;
        checked += 1;
    }
    checked
}

async fn check(daemon: &Daemon, row: &str, request: &str, status: &str, json: &str) {
    let request = expand(request);
    let (method, rest) = request.strip_prefix("> ").unwrap().split_once(' ').unwrap();
    let (path, body) = rest.split_once(' ').unwrap_or((rest, ""));
    let response = daemon.connect().await.request(method, path, body).await.unwrap();
    openapi::assert_documented(method, path, body, &response);
    let retry_after =
        response.header("retry-after").map_or(String::new(), |value| format!(" {value}"));
    assert_eq!(response.body, json, "{row}");
    assert_eq!(format!("{}{retry_after}", response.status), status, "{row}");
    let is_problem = json.starts_with(r#"{"type""#);
    let kind = if is_problem { "application/problem+json" } else { "application/json" };
    assert_eq!(response.header("content-type"), Some(kind), "{row}");
    assert_eq!(response.header("cache-control"), Some("no-store"), "{row}");
}
