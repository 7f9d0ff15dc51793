//! `TOLLGATE.CHECK`, `CL.THROTTLE`, and the usual counter on a plain Redis.

use tollgate::{Kind, Limit};

use super::Requests;
use super::cursor::{Cursor, Item, MAX_DEPTH, Stop};
use super::template::{Placeholder, Template};
use crate::error::LoadError;
use crate::keys::Keys;
use crate::plan::{CheckSpec, Command, Endpoint, LimitedBy};
use crate::reply::{
    Decision, ErrorKind, ParseResult, ParsedReply, ProtocolError, Reply, RequestError,
};

/// An argument of a command.
#[derive(Clone, Debug)]
enum Arg<'a> {
    Text(&'a str),
    Key(&'a Keys),
    /// The key, followed by the current minute.
    KeyAndMinute(&'a Keys),
    Lease,
}

impl Arg<'_> {
    fn template(&self) -> Template {
        let empty = Template::default();
        match self {
            Arg::Text(text) => empty.text(text),
            Arg::Key(keys) => empty.key(keys),
            Arg::KeyAndMinute(keys) => empty.key(keys).text(":").placeholder(Placeholder::Minute),
            Arg::Lease => empty.placeholder(Placeholder::Lease),
        }
    }
}

fn command(args: &[Arg<'_>]) -> Template {
    let mut command = Template::default().text(&format!("*{}\r\n", args.len()));
    for arg in args.iter().map(Arg::template) {
        command = command.text(&format!("${}\r\n", arg.len())).append(&arg).text("\r\n");
    }
    command
}

/// The arguments of `CL.THROTTLE` for a token bucket: burst, count and seconds. `None` for limits
/// that the command cannot express.
#[must_use]
pub fn token_bucket(limits: &str) -> Option<[u64; 3]> {
    let limit: Limit = limits.parse().ok()?;
    let spec = limit.spec();
    let Kind::TokenBucket { burst } = spec.kind else { return None };
    let second = 1_000_000;
    let seconds = spec.window.get() / second;
    spec.window.get().is_multiple_of(second).then_some([burst - 1, spec.count, seconds])
}

/// The lifetime of a plain counter in seconds: the window of a minute.
const COUNTER_TTL: &str = "60";

pub(super) fn greeting(endpoint: &Endpoint) -> Option<Vec<u8>> {
    let password = endpoint.password.as_deref()?;
    let mut args = vec![Arg::Text("AUTH")];
    args.extend(endpoint.user.as_deref().map(Arg::Text));
    args.push(Arg::Text(password));
    Some(command(&args).bytes().to_vec())
}

/// The length of the reply to a greeting, once it is complete.
///
/// # Errors
/// The server rejected the greeting; the error is its reply.
pub(crate) fn parse_greeting_reply(input: &[u8]) -> Result<Option<usize>, String> {
    let Some(end) = input.windows(2).position(|pair| pair == b"\r\n") else { return Ok(None) };
    if !input.starts_with(b"+OK") {
        return Err(String::from_utf8_lossy(&input[..end]).into_owned());
    }
    Ok(Some(end + 2))
}

/// # Errors
/// The command cannot express the limits.
pub(super) fn requests(
    command: Command,
    check: &CheckSpec,
    keys: &Keys,
    has_leases: bool,
) -> Result<Requests, LoadError> {
    Ok(match command {
        Command::Check => check_requests(check, keys, has_leases),
        Command::Throttle => throttle_requests(check, keys)?,
        Command::Counter { .. } => counter_requests(keys),
    })
}

pub(super) fn parse(command: Command, input: &[u8]) -> ParseResult {
    let mut cursor = Cursor::new(input);
    let parsed = match command {
        Command::Check => parse_decision(&mut cursor),
        Command::Throttle => parse_throttle(&mut cursor),
        Command::Counter { threshold } => parse_counter(&mut cursor, threshold),
    };
    match parsed {
        Ok(Some(reply)) => {
            Ok(Some(ParsedReply { reply, length: cursor.position(), is_last: false }))
        }
        Ok(None) => Err(ProtocolError("the reply has an unexpected type")),
        Err(Stop::Incomplete) => Ok(None),
        Err(Stop::Invalid(error)) => Err(error),
    }
}

pub(super) fn limits(input: &[u8]) -> Vec<String> {
    // A reply that cannot be parsed contains no limits; `parse` reports the error.
    parse_limits(&mut Cursor::new(input)).unwrap_or_default()
}

fn check_requests(check: &CheckSpec, keys: &Keys, has_leases: bool) -> Requests {
    let cost = check.cost.to_string();
    let request = |name, more: &[Arg<'_>]| {
        let mut args = vec![Arg::Text(name)];
        match &check.limited_by {
            LimitedBy::Policy(name) => args.push(Arg::Text(name)),
            LimitedBy::Limits(text) => args.extend([Arg::Text("LIMIT"), Arg::Text(text)]),
        }
        args.push(Arg::Key(keys));
        args.extend_from_slice(more);
        command(&args)
    };
    let mut options = Vec::new();
    if check.cost != 1 {
        options.extend([Arg::Text("COST"), Arg::Text(&cost)]);
    }
    if has_leases {
        options.extend([Arg::Text("LEASE"), Arg::Lease]);
    }
    let name = if has_leases { "TOLLGATE.ACQUIRE" } else { "TOLLGATE.CHECK" };
    Requests {
        probe: request("TOLLGATE.PEEK", &[Arg::Text("COST"), Arg::Text("0")]),
        check: request(name, &options),
        release: request("TOLLGATE.RELEASE", &[Arg::Text("LEASE"), Arg::Lease]),
    }
}

fn throttle_requests(check: &CheckSpec, keys: &Keys) -> Result<Requests, LoadError> {
    let (LimitedBy::Limits(text) | LimitedBy::Policy(text)) = &check.limited_by;
    let numbers = token_bucket(text).ok_or_else(|| {
        LoadError::InvalidPlan(format!("CL.THROTTLE cannot express the limit {text:?}"))
    })?;
    let [burst, count, period] = numbers.map(|number| number.to_string());
    let request = |cost: u64| {
        let cost = cost.to_string();
        let mut args = vec![Arg::Text("CL.THROTTLE"), Arg::Key(keys)];
        args.extend([&burst, &count, &period].map(|number| Arg::Text(number)));
        if cost != "1" {
            args.push(Arg::Text(&cost));
        }
        command(&args)
    };
    Ok(Requests { probe: request(0), check: request(check.cost), release: Template::default() })
}

fn counter_requests(keys: &Keys) -> Requests {
    let increment = command(&[Arg::Text("INCR"), Arg::KeyAndMinute(keys)]);
    let expire = command(&[Arg::Text("EXPIRE"), Arg::KeyAndMinute(keys), Arg::Text(COUNTER_TTL)]);
    Requests {
        // Two replies, like those of the counter; the key of minute 0 does not exist.
        probe: expire.clone().append(&expire),
        check: increment.append(&expire),
        release: Template::default(),
    }
}

fn error_reply(message: &[u8]) -> Reply {
    let is_unavailable = message.starts_with(b"TRYAGAIN") || message.starts_with(b"LOADING");
    let kind = if is_unavailable { ErrorKind::Unavailable } else { ErrorKind::Rejected };
    Reply::Error(RequestError::new(kind, String::from_utf8_lossy(message)))
}

/// Parses the map of a decision, a flat list of names and values.
fn parse_decision(cursor: &mut Cursor<'_>) -> Result<Option<Reply>, Stop> {
    let fields = match cursor.item()? {
        Item::Array(length) => length / 2,
        Item::Error(message) => return Ok(Some(error_reply(message))),
        _ => return Ok(None),
    };
    let (mut allowed, mut degraded, mut reason) = (None, false, "");
    let (mut time, mut delay) = (None, Some(0));
    for _ in 0..fields {
        let name = cursor.item()?;
        let value = cursor.item()?;
        match (name, value) {
            (Item::Bulk(b"allowed"), Item::Integer(number)) => allowed = Some(number == 1),
            (Item::Bulk(b"degraded"), Item::Integer(number)) => degraded = number == 1,
            (Item::Bulk(b"time_us"), Item::Integer(micros)) => time = u64::try_from(micros).ok(),
            (Item::Bulk(b"delay_us"), Item::Integer(micros)) => delay = u64::try_from(micros).ok(),
            // A reason that is not text is not one by limits either.
            (Item::Bulk(b"reason"), Item::Bulk(text)) => {
                reason = std::str::from_utf8(text).unwrap_or_default();
            }
            (_, value) => cursor.skip_elements(value, MAX_DEPTH)?,
        }
    }
    let (Some(allowed), Some(time), Some(delay)) = (allowed, time, delay) else { return Ok(None) };
    Ok(Some(Reply::Decision(Decision::from_fields(allowed, degraded, reason, time, delay))))
}

/// Parses the five integers of `CL.THROTTLE`; the first one is 1 for a denial.
fn parse_throttle(cursor: &mut Cursor<'_>) -> Result<Option<Reply>, Stop> {
    match cursor.item()? {
        Item::Array(5) => {
            let is_limited = cursor.item()?;
            for _ in 0..4 {
                cursor.skip()?;
            }
            let Item::Integer(is_limited) = is_limited else { return Ok(None) };
            Ok(Some(Reply::Decision(Decision::from_allowed(is_limited == 0))))
        }
        Item::Error(message) => Ok(Some(error_reply(message))),
        _ => Ok(None),
    }
}

/// Parses the replies to `INCR` and `EXPIRE`.
fn parse_counter(cursor: &mut Cursor<'_>, threshold: u64) -> Result<Option<Reply>, Stop> {
    let (count, expire) = (cursor.item()?, cursor.item()?);
    Ok(match (count, expire) {
        (Item::Integer(count), Item::Integer(_)) => {
            let allowed = u64::try_from(count).is_ok_and(|count| count <= threshold);
            Some(Reply::Decision(Decision::from_allowed(allowed)))
        }
        (Item::Error(message), _) | (_, Item::Error(message)) => Some(error_reply(message)),
        _ => None,
    })
}

/// Parses the text of each limit in a decision.
fn parse_limits(cursor: &mut Cursor<'_>) -> Result<Vec<String>, Stop> {
    let Item::Array(fields) = cursor.item()? else { return Ok(Vec::new()) };
    let mut texts = Vec::new();
    for _ in 0..fields / 2 {
        let (name, value) = (cursor.item()?, cursor.item()?);
        let (Item::Bulk(b"limits"), Item::Array(limits)) = (name, value) else {
            cursor.skip_elements(value, MAX_DEPTH)?;
            continue;
        };
        for _ in 0..limits {
            let Item::Array(parts) = cursor.item()? else { return Ok(texts) };
            for _ in 0..parts / 2 {
                match (cursor.item()?, cursor.item()?) {
                    (Item::Bulk(b"limit"), Item::Bulk(text)) => {
                        texts.push(String::from_utf8_lossy(text).into_owned());
                    }
                    (_, value) => cursor.skip_elements(value, MAX_DEPTH)?,
                }
            }
        }
    }
    Ok(texts)
}
