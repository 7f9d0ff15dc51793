//! Rows of data: requests to one daemon, in order, and what it answers.

use tollgate::Micros;

use crate::daemon::Daemon;
use crate::openapi;

/// What every decision says unless something is wrong.
const USUAL: &str = r#""source":"store","degraded":false,"replayed":false"#;
/// Of leases and reservations.
const A: &str = "0000000000000000000000000000000a";
const B: &str = "0000000000000000000000000000000b";

fn written_out(text: &str) -> String {
    text.replace('~', USUAL).replace("{A}", A).replace("{B}", B)
}

/// Asks what the rows ask, and holds the answers to them; how many there were.
pub(crate) async fn check_all(daemon: &Daemon, rows: &str) -> usize {
    let rows = rows.lines().enumerate();
    let mut rows = rows.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let mut checked = 0;
    while let Some((line, asked)) = rows.next() {
        if let Some(micros) = asked.strip_prefix("+ ") {
            daemon.clock.advance(Micros::new(micros.parse().unwrap()));
            continue;
        }
        let status = rows.next().unwrap().1.strip_prefix("< ").unwrap();
        let json = written_out(rows.next().unwrap().1);
        check(daemon, &format!("line {}: {asked}", line + 1), asked, status, &json).await;
        checked += 1;
    }
    checked
}

async fn check(daemon: &Daemon, row: &str, asked: &str, status: &str, json: &str) {
    let asked = written_out(asked);
    let (method, rest) = asked.strip_prefix("> ").unwrap().split_once(' ').unwrap();
    let (path, body) = rest.split_once(' ').unwrap_or((rest, ""));
    let answer = daemon.connect().await.ask(method, path, body).await.unwrap();
    openapi::hold(method, path, body, &answer);
    let retry_after =
        answer.header("retry-after").map_or(String::new(), |header| format!(" {header}"));
    assert_eq!(answer.body, json, "{row}");
    assert_eq!(format!("{}{retry_after}", answer.status), status, "{row}");
    let is_problem = json.starts_with(r#"{"type""#);
    let kind = if is_problem { "application/problem+json" } else { "application/json" };
    assert_eq!(answer.header("content-type"), Some(kind), "{row}");
    assert_eq!(answer.header("cache-control"), Some("no-store"), "{row}");
}
