//! What a daemon reports: the overview, the keys of a policy and the state of a key.

use std::collections::HashSet;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

use crate::client::{Client, Reply};
use crate::operate::{self, Inspection};
use crate::top::rates::Counts;
use crate::usage::{Usage, encoded};

/// The interval of readings; the daemon samples its counters once a second.
const INTERVAL: Duration = Duration::from_secs(1);
/// The keys of each order. Those with a high rate are among the newest.
const KEYS: usize = 200;

/// `GET /api/overview`, without the parts that are not shown.
#[derive(Debug, Deserialize)]
pub(super) struct Overview {
    pub(super) version: String,
    /// The daemon's clock, in seconds since the Unix epoch.
    pub(super) time: f64,
    pub(super) started: f64,
    pub(super) privacy: String,
    pub(super) store: Store,
    pub(super) policies: Vec<Policy>,
    pub(super) history: History,
}

#[derive(Debug, Deserialize)]
pub(super) struct Store {
    pub(super) kind: String,
    pub(super) status: String,
}

/// The totals of policies are those at the last of these times.
#[derive(Debug, Deserialize)]
pub(super) struct History {
    pub(super) time: Vec<f64>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Policy {
    pub(super) name: String,
    pub(super) limits: Vec<String>,
    pub(super) tracked: bool,
    pub(super) totals: Counts,
}

/// A tracked key.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Key {
    pub(super) key: String,
    /// The key, if it is not UTF-8.
    pub(super) key_base64: Option<String>,
    #[serde(flatten)]
    pub(super) usage: Usage,
}

impl Key {
    /// A name that also distinguishes keys that `privacy` shows alike.
    pub(super) fn id(&self) -> String {
        format!("{} {}", self.usage.first_seen, self.key_base64.as_ref().unwrap_or(&self.key))
    }
}

#[derive(Debug, Deserialize)]
struct Page {
    keys: Vec<Key>,
}

/// What is shown, and therefore requested.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Subject {
    /// Whether only what becomes visible is requested.
    pub(super) is_paused: bool,
    /// The policy whose keys are listed.
    pub(super) policy: String,
    pub(super) prefix: String,
    /// The parameter with the key whose page is open.
    pub(super) key: Option<String>,
}

/// The responses about a subject.
#[derive(Debug)]
pub(super) struct Reading {
    pub(super) subject: Subject,
    /// Absent while paused.
    pub(super) overview: Option<Result<Overview>>,
    pub(super) keys: Result<Vec<Key>>,
    /// The lines of the page of a key.
    pub(super) key: Option<Result<Vec<String>>>,
}

/// Sends a reading once a second, and at once when the subject changes.
pub(super) async fn read_repeatedly(
    client: Client,
    mut subjects: watch::Receiver<Subject>,
    readings: mpsc::Sender<Reading>,
) {
    let mut shown = Subject::default();
    loop {
        let subject = subjects.borrow_and_update().clone();
        let is_paused = subject.is_paused;
        // A pause alone changes nothing that is shown.
        if subject != (Subject { is_paused: true, ..shown }) {
            let reading = read(&client, subject.clone()).await;
            if readings.send(reading).await.is_err() {
                return;
            }
        }
        shown = subject;
        let change = subjects.changed();
        let result = match is_paused {
            true => change.await,
            // Without a change in time, the next reading is due.
            false => timeout(INTERVAL, change).await.unwrap_or(Ok(())),
        };
        if result.is_err() {
            return;
        }
    }
}

/// Requests everything about a subject.
pub(super) async fn read(client: &Client, subject: Subject) -> Reading {
    let overview = match subject.is_paused {
        true => None,
        false => Some(overview(client).await),
    };
    let keys = keys(client, &subject.policy, &subject.prefix).await;
    let key = match &subject.key {
        Some(key) => Some(inspect(client, &subject.policy, key).await),
        None => None,
    };
    Reading { subject, overview, keys, key }
}

pub(super) async fn overview(client: &Client) -> Result<Overview> {
    get(client, "/api/overview").await
}

/// The keys that are used and denied now and in total, each once; none without a policy.
async fn keys(client: &Client, policy: &str, prefix: &str) -> Result<Vec<Key>> {
    let (mut keys, mut ids) = (Vec::new(), HashSet::new());
    if policy.is_empty() {
        return Ok(keys);
    }
    for order in ["most-denied", "most-used", "newest"] {
        let path = format!(
            "/api/keys?policy={}&prefix={}&order={order}&limit={KEYS}",
            encoded(policy),
            encoded(prefix)
        );
        let page: Page = get(client, &path).await?;
        keys.extend(page.keys.into_iter().filter(|key| ids.insert(key.id())));
    }
    Ok(keys)
}

async fn inspect(client: &Client, policy: &str, key: &str) -> Result<Vec<String>> {
    let path = format!("/api/key?policy={}&{key}", encoded(policy));
    let state: Inspection = get(client, &path).await?;
    Ok(operate::lines(&state))
}

async fn get<T: DeserializeOwned>(client: &Client, path: &str) -> Result<T> {
    match client.get(path).await? {
        Reply::Response(json) => serde_json::from_str(&json)
            .with_context(|| format!("the response to {path} is of another version of tollgate")),
        Reply::Unreachable(error) => bail!("{error}"),
    }
}
