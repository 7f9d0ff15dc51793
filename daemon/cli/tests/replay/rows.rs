//! Replays every section of the conformance rows that CSV can express, in memory and on a server,
//! and compares each decision with the engine's.

use std::fmt::Write;
use std::sync::{Arc, Mutex};

use serde_json::Value;
use tollgate::{
    Check, Decision, Id, ManualClock, Micros, Operation, Policy, Request, StoreError, Timestamp,
};
use tollgate_conformance::rows::{files, read, run};
use tollgate_state::{Answer, MemoryStore, Store};
use tollgate_testkit::{Folder, Server};

use crate::tool::run as replay;

/// A request and its decision.
#[derive(Clone, Debug)]
struct LoggedRequest {
    at: Timestamp,
    operation: Operation,
    policy: Policy,
    key: Vec<u8>,
    cost: u64,
    request_id: Option<Vec<u8>>,
    answer: Result<Decision, String>,
}

/// The requests of a section; `None` once CSV cannot express one of them.
type Section = Arc<Mutex<Option<Vec<LoggedRequest>>>>;

/// A memory store that records its requests.
#[derive(Debug)]
struct Recorder {
    store: MemoryStore,
    section: Section,
}

impl Recorder {
    fn note(&self, request: &Request<'_>, at: Timestamp, answer: &Result<Answer, StoreError>) {
        let mut section = self.section.lock().unwrap();
        let Some(requests) = &mut *section else { return };
        let expressible = match request.checks {
            // A log has one key per line, and ascending times.
            [check] if requests.last().is_none_or(|last| last.at <= at) => {
                let is_same = |request: &LoggedRequest| {
                    request.policy.shares_name(check.policy)
                        && request.policy.limits() == check.policy.limits()
                };
                let same = requests.iter().all(is_same);
                same.then_some(check)
            }
            _ => None,
        };
        // A backfill is not an operation of clients.
        let is_backfill = matches!(request.operation, Operation::Backfill { .. });
        let is_hidden = |check: &&Check<'_>| {
            check.policy.is_shadow() || check.policy.ban().is_some() || is_backfill
        };
        let Some(check) = expressible.filter(|check| !is_hidden(check)) else {
            *section = None;
            return;
        };
        let answer = answer.as_ref().map(|answer| answer.decisions[0].clone());
        requests.push(LoggedRequest {
            at,
            operation: request.operation,
            policy: check.policy.clone(),
            key: check.key.to_vec(),
            cost: check.cost.get(),
            request_id: request.request_id.map(<[u8]>::to_vec),
            answer: answer.map_err(ToString::to_string),
        });
    }
}

impl Store for Recorder {
    async fn decide(&self, requests: &[Request<'_>]) -> Vec<Result<Answer, StoreError>> {
        let at = self.store.now();
        let answers = self.store.decide(requests).await;
        for (request, answer) in requests.iter().zip(&answers) {
            self.note(request, at, answer);
        }
        answers
    }
}

/// All sections of all files that CSV can express.
fn sections() -> Vec<Vec<LoggedRequest>> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let mut all: Vec<Section> = Vec::new();
    for name in files().unwrap() {
        let rows = read(&name).unwrap_or_else(|error| panic!("{error}"));
        let clock = ManualClock::default();
        let fresh = || {
            let section = Section::new(Mutex::new(Some(Vec::new())));
            all.push(section.clone());
            Recorder { store: MemoryStore::builder().clock(clock.clone()).build(), section }
        };
        runtime.block_on(run(&rows, fresh, |time| clock.set(time)));
    }
    let take = |section: Section| section.lock().unwrap().take().filter(|all| !all.is_empty());
    all.into_iter().filter_map(take).collect()
}

fn csv(section: &[LoggedRequest]) -> String {
    let mut text = String::from(
        "time,verb,key,cost,request_id,lease_id,reservation_id,max_wait,for,charged_at\n",
    );
    for request in section {
        write!(text, "{},{},", request.at, request.operation.as_str()).unwrap();
        let quoted = |x: &[u8]| {
            let text = String::from_utf8(x.to_vec()).unwrap();
            format!("\"{}\"", text.replace('"', "\"\""))
        };
        let id = request.request_id.as_deref().map_or_else(String::new, quoted);
        write!(text, "{},{},{id},", quoted(&request.key), request.cost).unwrap();
        let show = |id: Option<Id>| id.map_or_else(String::new, |id| id.to_string());
        let seconds = |micros: Micros| {
            if micros.get() == u64::MAX { String::new() } else { micros.to_string() }
        };
        let (lease, reservation, wait, span, time) = match request.operation {
            Operation::Check { lease } => (lease, None, None, None, None),
            Operation::Acquire { lease }
            | Operation::Renew { lease }
            | Operation::Release { lease } => (Some(lease), None, None, None, None),
            Operation::Reserve { id, max_wait } => (None, Some(id), Some(max_wait), None, None),
            Operation::Cancel { id } => (None, Some(id), None, None, None),
            Operation::Block { span } => (None, None, None, span, None),
            Operation::Refund { time } => (None, None, None, None, time),
            _ => (None, None, None, None, None),
        };
        let wait = wait.map_or_else(String::new, seconds);
        let span = span.map_or_else(String::new, seconds);
        let time = time.map_or_else(String::new, |time| time.to_string());
        writeln!(text, "{},{},{wait},{span},{time}", show(lease), show(reservation)).unwrap();
    }
    text
}

/// The limits of a section for `--limit`.
fn limits(section: &[LoggedRequest]) -> String {
    let limits: Vec<_> = section[0].policy.limits().iter().map(ToString::to_string).collect();
    limits.join("; ")
}

/// Replays sections and compares each decision with the engine's; returns the number of decisions.
fn check(sections: &[Vec<LoggedRequest>], more: &[&str]) -> usize {
    let folder = Folder::create();
    let (mut count, mut verbs) = (0, std::collections::BTreeSet::new());
    for section in sections {
        let log = folder.write("log.csv", csv(section));
        let out = folder.join("decisions");
        let limits = limits(section);
        let mut arguments = vec![log.to_str().unwrap(), "--limit", &limits, "--decisions"];
        arguments.extend([out.to_str().unwrap(), "--verbs"]);
        arguments.extend(more);
        let (code, output, error) = replay(&arguments);
        assert_eq!((code, &*error), (0, ""), "{limits}\n{}{output}", csv(section));
        let lines = std::fs::read_to_string(&out).unwrap();
        assert_eq!(lines.lines().count(), section.len(), "{}{output}", csv(section));
        for (request, line) in section.iter().zip(lines.lines()) {
            let mut found: Value = serde_json::from_str(line).unwrap();
            let fields = found.as_object_mut().unwrap();
            fields.remove("line");
            assert_eq!(fields.remove("verb").unwrap(), request.operation.as_str());
            assert_eq!(fields.remove("key").unwrap(), *String::from_utf8_lossy(&request.key));
            assert_eq!(fields.remove("cost").unwrap(), request.cost);
            let policy: Policy = limits.parse().unwrap();
            let expected: Value = match &request.answer {
                Ok(answer) => {
                    serde_json::from_str(&tollgate_daemon::decision_json(&policy, answer)).unwrap()
                }
                Err(error) => serde_json::json!({ "error": error }),
            };
            assert_eq!(found, expected, "{limits}\n{}at {request:?}", csv(section));
            count += 1;
            verbs.insert(request.operation.as_str());
        }
    }
    assert_eq!(verbs.len(), 14, "{verbs:?}");
    count
}

/// The sections that CSV can express, under policies that consist of their limits.
fn expressible() -> Vec<Vec<LoggedRequest>> {
    let is_text = |request: &LoggedRequest| {
        std::str::from_utf8(&request.key)
            .is_ok_and(|key| !key.contains(['\n', '\r']) && !key.is_empty())
            && request.request_id.as_deref().is_none_or(|request_id| {
                !request_id.is_empty() && std::str::from_utf8(request_id).is_ok()
            })
    };
    // Limits cannot express a maximum of log entries, lists and bounds of keys.
    let is_usual = |request: &LoggedRequest| {
        let usual: Policy = limits(std::slice::from_ref(request)).parse().unwrap();
        usual.log_entries() == request.policy.log_entries()
            && request.policy.listed(&request.key).is_none()
            && request.policy.max_keys().is_none()
    };
    let mut all = sections();
    all.retain(|section| section.iter().all(|request| is_text(request) && is_usual(request)));
    all
}

#[test]
fn every_decision_in_memory_equals_the_engines() {
    let sections = expressible();
    let count = check(&sections, &[]);
    println!("{} sections, {count} decisions", sections.len());
    assert!(sections.len() > 200 && count > 1_500, "{} sections, {count}", sections.len());
}

#[test]
fn every_decision_on_a_server_equals_the_engines() {
    let server = Server::start();
    let url = format!("redis://127.0.0.1:{}", server.port());
    let sections = expressible();
    let count = check(&sections, &["--store", &url]);
    assert!(count > 1_500, "{count}");
    assert_eq!(server.keys_without_ttl(""), Vec::<String>::new(), "what was kept there is deleted");
}
