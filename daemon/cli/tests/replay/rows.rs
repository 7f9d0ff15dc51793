//! Every section of the engine's rows that a log can tell, as a CSV: each decision is the engine's, in
//! memory and on a server.

use std::fmt::Write;
use std::sync::{Arc, Mutex};

use serde_json::Value;
use tollgate::{
    Decision, Id, ManualClock, Micros, Operation, Policy, Request, StoreError, Timestamp,
};
use tollgate_conformance::rows::{files, read, run};
use tollgate_store::{Answer, MemoryStore, Store};
use tollgate_testkit::Server;

use crate::process::{Directory, run as replay};

/// One request as it was asked, and what came of it.
#[derive(Clone, Debug)]
struct Asked {
    at: Timestamp,
    verb: Operation,
    policy: Policy,
    key: Vec<u8>,
    cost: u64,
    request_id: Option<Vec<u8>>,
    answer: Result<Decision, String>,
}

/// What was asked in a section; nothing once that was more than a log can tell.
type Section = Arc<Mutex<Option<Vec<Asked>>>>;

/// A memory store that writes down what it is asked.
#[derive(Debug)]
struct Recorder {
    store: MemoryStore,
    section: Section,
}

impl Recorder {
    fn note(&self, request: &Request<'_>, at: Timestamp, answer: &Result<Answer, StoreError>) {
        let mut section = self.section.lock().unwrap();
        let Some(asked) = &mut *section else { return };
        let told = match request.checks {
            // A log has one key a line, and its times do not go back.
            [check] if asked.last().is_none_or(|last| last.at <= at) => {
                let is_same = |x: &Asked| {
                    x.policy.shares_name(check.policy) && x.policy.limits() == check.policy.limits()
                };
                let same = asked.iter().all(is_same);
                same.then_some(check)
            }
            _ => None,
        };
        let Some(check) = told.filter(|x| !x.policy.is_shadow()) else {
            *section = None;
            return;
        };
        let answer = answer.as_ref().map(|answer| answer.decisions[0].clone());
        asked.push(Asked {
            at,
            verb: request.operation,
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

/// All sections of all files that a log can tell.
fn sections() -> Vec<Vec<Asked>> {
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
    let told = |section: Section| section.lock().unwrap().take().filter(|i| !i.is_empty());
    all.into_iter().filter_map(told).collect()
}

fn csv(section: &[Asked]) -> String {
    let mut text = String::from(
        "time,verb,key,cost,request_id,lease_id,reservation_id,max_wait,for,charged_at\n",
    );
    for section in section {
        let micros = section.at.as_micros();
        write!(text, "{}.{:06},{},", micros / 1_000_000, micros % 1_000_000, section.verb.as_str())
            .unwrap();
        let quoted = |x: &[u8]| {
            let text = String::from_utf8(x.to_vec()).unwrap();
            format!("\"{}\"", text.replace('"', "\"\""))
        };
        let id = section.request_id.as_deref().map_or_else(String::new, quoted);
        write!(text, "{},{},{id},", quoted(&section.key), section.cost).unwrap();
        let show = |id: Option<Id>| id.map_or_else(String::new, |id| id.to_string());
        let seconds = |micros: Micros| {
            if micros.get() == u64::MAX { String::new() } else { micros.to_string() }
        };
        let (lease, reservation, wait, span, time) = match section.verb {
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

/// The limits of a section as `--limit` takes them, if all of the policy is in its limits.
fn limits(section: &[Asked]) -> String {
    let limits: Vec<_> = section[0].policy.limits().iter().map(ToString::to_string).collect();
    limits.join("; ")
}

/// Replays sections, and holds each decision to what the engine answered; how many there were.
fn hold(sections: &[Vec<Asked>], more: &[&str]) -> usize {
    let directory = Directory::new();
    let (mut held, mut verbs) = (0, std::collections::BTreeSet::new());
    for section in sections {
        let log = directory.file("log.csv", csv(section));
        let out = directory.path("decisions");
        let limits = limits(section);
        let mut arguments = vec![log.to_str().unwrap(), "--limit", &limits, "--decisions"];
        arguments.extend([out.to_str().unwrap(), "--verbs"]);
        arguments.extend(more);
        let (code, output, complaint) = replay(&arguments);
        assert_eq!((code, &*complaint), (0, ""), "{limits}\n{}{output}", csv(section));
        let lines = std::fs::read_to_string(&out).unwrap();
        assert_eq!(lines.lines().count(), section.len(), "{}{output}", csv(section));
        for (asked, line) in section.iter().zip(lines.lines()) {
            let mut got: Value = serde_json::from_str(line).unwrap();
            let fields = got.as_object_mut().unwrap();
            fields.remove("line");
            assert_eq!(fields.remove("verb").unwrap(), asked.verb.as_str());
            assert_eq!(fields.remove("key").unwrap(), *String::from_utf8_lossy(&asked.key));
            assert_eq!(fields.remove("cost").unwrap(), asked.cost);
            let policy: Policy = limits.parse().unwrap();
            let wanted: Value = match &asked.answer {
                Ok(answer) => {
                    serde_json::from_str(&tollgate_server::decision_json(&policy, answer)).unwrap()
                }
                Err(error) => serde_json::json!({ "error": error }),
            };
            assert_eq!(got, wanted, "{limits}\n{}at {asked:?}", csv(section));
            held += 1;
            verbs.insert(asked.verb.as_str());
        }
    }
    assert_eq!(verbs.len(), 13, "{verbs:?}");
    held
}

/// What a line of a CSV can carry, under limits that tell all of their policy.
fn tellable() -> Vec<Vec<Asked>> {
    let is_text = |y: &Asked| {
        std::str::from_utf8(&y.key).is_ok_and(|x| !x.contains(['\n', '\r']) && !x.is_empty())
            && y.request_id.as_deref().is_none_or(|request_id| {
                !request_id.is_empty() && std::str::from_utf8(request_id).is_ok()
            })
    };
    // A log that holds fewer entries than usual, lists and bounds cannot be said in limits.
    let is_usual = |x: &Asked| {
        let usual: Policy = limits(std::slice::from_ref(x)).parse().unwrap();
        usual.log_entries() == x.policy.log_entries()
            && x.policy.listed(&x.key).is_none()
            && x.policy.max_keys().is_none()
    };
    let mut all = sections();
    all.retain(|x| x.iter().all(|i| is_text(i) && is_usual(i)));
    all
}

#[test]
fn every_decision_is_the_engines_in_memory() {
    let sections = tellable();
    let held = hold(&sections, &[]);
    println!("{} sections, {held} decisions", sections.len());
    assert!(sections.len() > 200 && held > 1_500, "{} sections, {held}", sections.len());
}

#[test]
fn every_decision_is_the_engines_on_a_server() {
    let server = Server::start();
    let url = format!("redis://127.0.0.1:{}", server.port());
    let sections = tellable();
    let held = hold(&sections, &["--store", &url]);
    assert!(held > 1_500, "{held}");
    assert_eq!(server.keys_without_ttl(""), Vec::<String>::new(), "what was kept there is deleted");
}
