//! The request of a row: an operation, its checks and its options.

use tollgate_algorithms::{Check, Cost, Id, Micros, Operation, Request, Timestamp};

use super::policies::{Policies, PolicyLine};
use super::spans::{moment, span};
use super::words::{Mistake, Words};

/// An owned request.
#[derive(Clone, Debug)]
pub(super) struct TestRequest {
    pub(super) operation: Operation,
    pub(super) checks: Vec<TestCheck>,
    request_id: Option<Vec<u8>>,
}

/// An owned check.
#[derive(Clone, Debug)]
pub(super) struct TestCheck {
    pub(super) policy: PolicyLine,
    key: Vec<u8>,
    cost: Cost,
}

impl TestRequest {
    pub(super) fn checks(&self) -> Vec<Check<'_>> {
        self.checks
            .iter()
            .map(|check| Check { policy: &check.policy.policy, key: &check.key, cost: check.cost })
            .collect()
    }

    pub(super) fn request<'a>(&'a self, checks: &'a [Check<'a>]) -> Request<'a> {
        Request { operation: self.operation, checks, request_id: self.request_id.as_deref() }
    }
}

/// The options after the checks.
#[derive(Debug, Default)]
struct Options {
    id: Option<Id>,
    max_wait: Option<Micros>,
    time: Option<Timestamp>,
    span: Option<Micros>,
    limit: Option<usize>,
    request_id: Option<Vec<u8>>,
}

const OPTIONS: [&str; 6] = ["as", "max-wait", "time", "for", "limit", "request"];

/// `OPERATION [POLICY KEY [COST] [and …]] [OPTION…] ->`.
pub(super) fn parse_request(
    words: &mut Words<'_>,
    policies: &Policies,
    base: Timestamp,
) -> Result<TestRequest, Mistake> {
    let name = words.need("the operation")?;
    let checks = checks(words, policies)?;
    let mut options = Options::default();
    while !words.skip_word("->") {
        option(words, &mut options, base)?;
    }
    let request_id = options.request_id.take();
    let operation = operation(name, &mut options, &checks)?;
    match options {
        Options { id: None, max_wait: None, time: None, span: None, limit: None, .. } => {
            Ok(TestRequest { operation, checks, request_id })
        }
        _ => Err(format!("{name} has no such option")),
    }
}

fn operation(
    name: &str,
    options: &mut Options,
    checks: &[TestCheck],
) -> Result<Operation, Mistake> {
    let id = options.id.take();
    let need = |id: Option<Id>| id.ok_or_else(|| format!("{name} needs an id, as in `as a`"));
    Ok(match name {
        "check" => Operation::Check { lease: id },
        "reserve" => {
            let max_wait = options.max_wait.take().ok_or("reserve needs a max-wait")?;
            Operation::Reserve { id: need(id)?, max_wait }
        }
        "cancel" => Operation::Cancel { id: need(id)? },
        "acquire" => Operation::Acquire { lease: need(id)? },
        "renew" => Operation::Renew { lease: need(id)? },
        "release" => Operation::Release { lease: need(id)? },
        _ if id.is_some() => return Err(format!("{name} has no id")),
        "peek" => Operation::Peek,
        "take" => Operation::Take,
        "refund" => Operation::Refund { time: options.time.take() },
        "penalize" => Operation::Penalize,
        "backfill" => {
            let number = options.limit.take().ok_or("backfill needs a limit, as in `limit 1`")?;
            let time = options.time.take().ok_or("backfill needs a time")?;
            Operation::Backfill { limit: limit_index(number, checks)?, time }
        }
        "settle" => Operation::Settle,
        "reset" => Operation::Reset,
        "block" => Operation::Block { span: options.span.take() },
        "unblock" => Operation::Unblock,
        _ => return Err(format!("{name:?} is no operation")),
    })
}

fn option(words: &mut Words<'_>, options: &mut Options, base: Timestamp) -> Result<(), Mistake> {
    let name = words.need("`->`")?;
    let value = |words: &mut Words<'_>| words.need(name).map(str::to_owned);
    match name {
        "as" => options.id = Some(id(&value(words)?)?),
        "max-wait" => options.max_wait = Some(span(&value(words)?)?),
        "time" => options.time = Some(moment(&value(words)?, base)?),
        "for" => options.span = Some(span(&value(words)?)?),
        "limit" => {
            let number = value(words)?.parse().map_err(|_| "limit needs a number")?;
            options.limit = Some(number);
        }
        "request" => options.request_id = Some(bytes(&value(words)?)?),
        _ => return Err(format!("{name:?} is no option")),
    }
    Ok(())
}

/// The canonical index of a limit, which rows count from 1 in the order of the policy's text.
fn limit_index(number: usize, checks: &[TestCheck]) -> Result<u8, Mistake> {
    let position = number.checked_sub(1).ok_or("limits are counted from 1")?;
    let places = checks.first().map_or(&[][..], |check| &check.policy.places);
    let index = places.get(position).copied().unwrap_or(position);
    u8::try_from(index).map_err(|_| format!("{number} is too large for a limit"))
}

/// The id whose last bytes are the name.
pub(super) fn id(name: &str) -> Result<Id, Mistake> {
    if name.len() > 16 {
        return Err(format!("{name:?} is too long for an id"));
    }
    let bits = name.bytes().fold(0, |bits: u128, byte| bits << 8 | u128::from(byte));
    Ok(Id::from_u128(bits))
}

fn checks(words: &mut Words<'_>, policies: &Policies) -> Result<Vec<TestCheck>, Mistake> {
    let mut checks = Vec::new();
    if words.peek().is_some_and(|word| word == "->" || OPTIONS.contains(&word)) {
        return Ok(checks);
    }
    loop {
        let name = words.need("the policy")?;
        let policy = policies.get(name).ok_or_else(|| format!("{name:?} is no policy"))?;
        let keys = keys(words.need("the key")?)?;
        let cost = words.read_as(|word| word.parse().ok()).map_or(Some(Cost::ONE), Cost::new);
        let cost = cost.ok_or("a cost is at most 2^53 - 1")?;
        let check = |key| TestCheck { policy: policy.clone(), key, cost };
        checks.extend(keys.into_iter().map(check));
        if !words.skip_word("and") {
            return Ok(checks);
        }
    }
}

/// `k`, or `k1..k33` for a range of keys.
fn keys(word: &str) -> Result<Vec<Vec<u8>>, Mistake> {
    let Some((first, last)) = word.split_once("..") else {
        return Ok(vec![bytes(word)?]);
    };
    let stem = first.trim_end_matches(|c: char| c.is_ascii_digit());
    let number = |text: &str| text.strip_prefix(stem).and_then(|digits| digits.parse::<u32>().ok());
    match (number(first), number(last)) {
        (Some(first), Some(last)) => {
            Ok((first..=last).map(|n| format!("{stem}{n}").into_bytes()).collect())
        }
        _ => Err(format!("{word:?} is no range of keys")),
    }
}

/// `k`, `''` for no bytes, `k*300` for 300 times `k`, or `hex:00ff`.
fn bytes(word: &str) -> Result<Vec<u8>, Mistake> {
    if word == "''" {
        return Ok(Vec::new());
    }
    if let Some(digits) = word.strip_prefix("hex:") {
        let byte =
            |at: usize| digits.get(at..at + 2).and_then(|digit| u8::from_str_radix(digit, 16).ok());
        let all: Option<Vec<u8>> = (0..digits.len()).step_by(2).map(byte).collect();
        return all.ok_or_else(|| format!("{word:?} is not hexadecimal"));
    }
    let repeated = word.split_once('*').and_then(|(part, times)| Some((part, times.parse().ok()?)));
    let (part, times) = repeated.unwrap_or((word, 1));
    Ok(part.repeat(times).into_bytes())
}
