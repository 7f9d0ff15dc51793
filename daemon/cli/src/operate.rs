//! The commands of operators: `block`, `unblock`, `reset`, `refund`, `penalize` and `inspect`.

use std::fmt;
use std::num::NonZeroU64;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::arguments::{Block, Form, KeyOperation};
use crate::client::{Client, Reply};
use crate::output;
use crate::subject::Subject;
use crate::usage::{self, Note, Timeline, Usage};

/// The exit code if there was nothing to change.
const UNCHANGED: u8 = 1;

/// The result of an operation that changes a key. Times stay text, so that they are exact.
#[derive(Debug, Deserialize)]
struct Change {
    changed: bool,
    granted: u64,
    capacity: u64,
    remaining: u64,
    /// The key's block, after `block`, `unblock` and `reset`.
    block: Option<BlockState>,
    /// Why the operation may not have the effect that was meant.
    hint: Option<String>,
}

pub(crate) fn block(arguments: &Block) -> Result<ExitCode> {
    let span = arguments.span.as_ref().map(|span| ("for", json!(span)));
    change(&arguments.operation, "block", span, |change| {
        change.block.as_ref().map_or_else(String::new, ToString::to_string)
    })
}

pub(crate) fn unblock(arguments: &KeyOperation) -> Result<ExitCode> {
    change(arguments, "unblock", None, |change| match change.changed {
        true => format!("unblocked, {}", change.left()),
        false => "not blocked".to_owned(),
    })
}

pub(crate) fn reset(arguments: &KeyOperation) -> Result<ExitCode> {
    change(arguments, "reset", None, |change| {
        let result = if change.changed { "reset" } else { "nothing to reset" };
        match &change.block {
            None => format!("{result}, {}", change.left()),
            Some(block) => {
                format!("{result}, still {block}; `tollgate unblock` removes the block")
            }
        }
    })
}

pub(crate) fn refund(arguments: &KeyOperation, cost: NonZeroU64) -> Result<ExitCode> {
    change(arguments, "refund", Some(("cost", json!(cost))), |change| match change.changed {
        true => format!("{} given back, {}", change.granted, change.left()),
        false => format!("nothing to give back, {}", change.left()),
    })
}

pub(crate) fn penalize(arguments: &KeyOperation, cost: NonZeroU64) -> Result<ExitCode> {
    change(arguments, "penalize", Some(("cost", json!(cost))), |change| match change.changed {
        true => format!("{} charged, {}", change.granted, change.left()),
        false => format!("nothing charged, {}", change.left()),
    })
}

impl Change {
    fn left(&self) -> String {
        format!("{} of {} left", self.remaining, self.capacity)
    }
}

/// Sends an operation, and prints its result: one line, or JSON.
fn change(
    arguments: &KeyOperation,
    operation: &str,
    field: Option<(&'static str, Value)>,
    describe: impl Fn(&Change) -> String,
) -> Result<ExitCode> {
    let subject = Subject::new(&arguments.key)?;
    let response = send(arguments, operation, subject.json(field))?;
    let change: Change =
        serde_json::from_str(&response).context("the response is not the result of a change")?;
    match arguments.output {
        Form::Json => output::print(&format!("{response}\n"))?,
        Form::Text => {
            output::print_hint(change.hint.as_deref());
            let (key, policy, result) =
                (subject.printable_key(), &subject.policy, describe(&change));
            output::print(&format!("{key}  {policy}  {result}\n"))?;
        }
    }
    Ok(if change.changed { ExitCode::SUCCESS } else { ExitCode::from(UNCHANGED) })
}

/// Returns the result of an operation as JSON.
fn send(arguments: &KeyOperation, operation: &str, body: String) -> Result<String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let client = Client::new(&arguments.daemon)?;
    match runtime.block_on(client.post(&format!("/v1/{operation}"), body))? {
        Reply::Response(response) => Ok(response),
        Reply::Unreachable(error) => {
            bail!("no daemon at {} ({error}); set --url to its URL", arguments.daemon.url)
        }
    }
}

/// The state of a key.
#[derive(Debug, Deserialize)]
pub(crate) struct Inspection {
    hint: Option<String>,
    block: Option<BlockState>,
    ban: Option<BanState>,
    limits: Vec<LimitState>,
    reservations: Vec<ReservationState>,
    held: Option<HeldState>,
    usage: Option<Usage>,
    #[serde(default)]
    recent: Vec<Note>,
    timeline: Option<Timeline>,
}

#[derive(Debug, Deserialize)]
struct BlockState {
    ends_after: Option<Box<RawValue>>,
}

impl fmt::Display for BlockState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.ends_after {
            Some(seconds) => write!(f, "blocked for {seconds}s"),
            None => f.write_str("blocked until it is unblocked"),
        }
    }
}

#[derive(Debug, Deserialize)]
struct BanState {
    max_denials: u64,
    denials: u64,
    window_ends_after: Option<Box<RawValue>>,
    banned_for: Option<Box<RawValue>>,
}

impl fmt::Display for BanState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BanState { max_denials, denials, window_ends_after, banned_for } = self;
        if let Some(seconds) = banned_for {
            return write!(f, "banned for {seconds}s; `tollgate unblock` lifts the ban");
        }
        write!(f, "{denials} of {max_denials} denials until a ban")?;
        match window_ends_after {
            Some(seconds) => write!(f, ", counted for {seconds}s"),
            None => Ok(()),
        }
    }
}

#[derive(Debug, Deserialize)]
struct LimitState {
    limit: String,
    capacity: u64,
    used: u64,
    reset_after: Box<RawValue>,
    leases: Vec<LeaseState>,
}

#[derive(Debug, Deserialize)]
struct LeaseState {
    lease_id: Option<String>,
    cost: u64,
    ends_after: Box<RawValue>,
}

#[derive(Debug, Deserialize)]
struct ReservationState {
    reservation_id: Option<String>,
    cost: u64,
    acts_after: Box<RawValue>,
}

#[derive(Debug, Deserialize)]
struct HeldState {
    remaining: u64,
    ends_after: Box<RawValue>,
}

pub(crate) fn inspect(arguments: &KeyOperation) -> Result<ExitCode> {
    let subject = Subject::new(&arguments.key)?;
    let response = send(arguments, "inspect", subject.json([]))?;
    match arguments.output {
        Form::Json => output::print(&format!("{response}\n"))?,
        Form::Text => {
            let state: Inspection =
                serde_json::from_str(&response).context("the response is not an inspection")?;
            output::print_hint(state.hint.as_deref());
            let mut text = format!("{}  {}\n", subject.printable_key(), subject.policy);
            lines(&state).iter().for_each(|line| text.push_str(&format!("  {line}\n")));
            output::print(&text)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The state of a key, one line for each limit, lease and reservation, the block and the ban, and what
/// is recorded about it.
pub(crate) fn lines(state: &Inspection) -> Vec<String> {
    let mut lines = Vec::new();
    lines.extend(state.block.as_ref().map(ToString::to_string));
    lines.extend(state.ban.as_ref().map(ToString::to_string));
    for LimitState { limit, capacity, used, reset_after, leases } in &state.limits {
        let recovers = match reset_after.get() {
            "0" => String::new(),
            seconds => format!(", fully recovered in {seconds}s"),
        };
        lines.push(format!("{limit}: {used} of {capacity} used{recovers}"));
        for LeaseState { lease_id, cost, ends_after } in leases {
            let id = lease_id.as_deref().unwrap_or("without id");
            lines.push(format!("  lease {id}: cost {cost}, ends in {ends_after}s"));
        }
    }
    for ReservationState { reservation_id, cost, acts_after } in &state.reservations {
        let id = reservation_id.as_deref().unwrap_or("without id");
        lines.push(format!("reservation {id}: cost {cost}, acts in {acts_after}s"));
    }
    if let Some(HeldState { remaining, ends_after }) = &state.held {
        lines.push(format!(
            "held by this daemon: {remaining}, charged in advance, for up to {ends_after}s"
        ));
    }
    lines.extend(usage::lines(state.usage.as_ref(), &state.recent, state.timeline.as_ref()));
    lines
}
