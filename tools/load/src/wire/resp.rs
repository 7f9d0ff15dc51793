//! `TOLLGATE.CHECK`, `CL.THROTTLE`, and the counter of a bare Redis.

use tollgate::{Id, Kind, Limit};

use super::cursor::{Cursor, Item, Stop};
use super::template::{Hole, Template};
use super::{Read, Taken, answer, counter};
use crate::answer::{Answer, Broken, ErrorKind, Reply};
use crate::keys::Keys;
use crate::plan::{Command, LimitedBy, Peer, Question};

/// How a daemon or a Redis is asked by a command.
#[derive(Clone, Debug)]
pub(crate) struct Resp {
    command: Command,
    greeting: Option<Vec<u8>>,
    probe: Vec<u8>,
    check: Template,
    release: Template,
}

/// A word of a command.
#[derive(Clone, Debug)]
enum Word<'a> {
    Is(&'a str),
    Key(&'a Keys),
    /// The key with its minute behind it.
    Minute(&'a Keys),
    Lease,
}

impl Word<'_> {
    fn template(&self) -> Template {
        let start = Template::default();
        match self {
            Word::Is(text) => start.text(text),
            Word::Key(keys) => start.text(&keys.prefix).hole(Hole::Key(keys.width())),
            Word::Minute(keys) => Word::Key(keys).template().text(":").hole(Hole::Minute),
            Word::Lease => start.hole(Hole::Lease),
        }
    }
}

fn command(words: &[Word<'_>]) -> Template {
    let mut all = Template::default().text(&format!("*{}\r\n", words.len()));
    for word in words.iter().map(Word::template) {
        all = all.text(&format!("${}\r\n", word.len())).then(&word).text("\r\n");
    }
    all
}

/// The numbers of a token bucket as `CL.THROTTLE` takes them: burst, count, seconds.
#[must_use]
pub fn bucket(limits: &str) -> Option<[u64; 3]> {
    let limit: Limit = limits.parse().ok()?;
    let spec = limit.spec();
    let Kind::TokenBucket { burst } = spec.kind else { return None };
    let second = 1_000_000;
    let seconds = spec.window.get() / second;
    spec.window.get().is_multiple_of(second).then_some([burst - 1, spec.count, seconds])
}

impl Resp {
    pub(crate) fn new(
        peer: &Peer,
        command: Command,
        question: &Question,
        keys: &Keys,
        leases: bool,
    ) -> Self {
        let (probe, check, release) = match command {
            Command::Check => checks(question, keys, leases),
            Command::Throttle => throttle(question, keys),
            Command::Counter { .. } => counts(keys),
        };
        let greeting = greeting(peer);
        Resp { command, greeting, probe: probe.bytes().to_vec(), check, release }
    }

    /// What may be wrong if it is refused.
    pub(super) fn remedy(&self) -> &'static str {
        match self.command {
            Command::Counter { .. } => {
                "--threshold counts in a Redis; leave it out to ask a tollgate daemon"
            }
            _ => "is it a tollgate daemon? a bare Redis counts with --threshold",
        }
    }

    pub(super) fn greeting(&self) -> Option<&[u8]> {
        self.greeting.as_deref()
    }

    pub(super) fn probe(&self) -> &[u8] {
        &self.probe
    }

    pub(super) fn ask(&self, key: u32, wall: u64, lease: Id, out: &mut Vec<u8>) {
        self.check.write(key, wall / counter::MINUTE, lease, out);
    }

    pub(super) fn release(&self, key: u32, lease: Id, out: &mut Vec<u8>) {
        self.release.write(key, 0, lease, out);
    }

    pub(super) fn read(&self, input: &[u8]) -> Read {
        let mut cursor = Cursor::new(input);
        let read = match self.command {
            Command::Check => decision(&mut cursor),
            Command::Throttle => throttled(&mut cursor),
            Command::Counter { threshold } => counter::read(&mut cursor, threshold),
        };
        match read {
            Ok(Some(reply)) => Ok(Some(Taken { reply, length: cursor.position(), is_last: false })),
            Ok(None) => Err(Broken("the answer is of another kind")),
            Err(Stop::Partial) => Ok(None),
            Err(Stop::Broken(broken)) => Err(broken),
        }
    }

    pub(super) fn limits(&self, input: &[u8]) -> Vec<String> {
        named_limits(&mut Cursor::new(input)).unwrap_or_default()
    }
}

fn greeting(peer: &Peer) -> Option<Vec<u8>> {
    let password = peer.password.as_deref()?;
    let mut words = vec![Word::Is("AUTH")];
    words.extend(peer.user.as_deref().map(Word::Is));
    words.push(Word::Is(password));
    Some(command(&words).bytes().to_vec())
}

type Requests = (Template, Template, Template);

fn checks(question: &Question, keys: &Keys, leases: bool) -> Requests {
    let cost = question.cost.to_string();
    let of = |verb| {
        let mut words = vec![Word::Is(verb)];
        words.extend(match &question.limited_by {
            LimitedBy::Policy(name) => vec![Word::Is(name)],
            LimitedBy::Limits(text) => vec![Word::Is("LIMIT"), Word::Is(text)],
        });
        words.push(Word::Key(keys));
        words
    };
    let mut check = of(if leases { "TOLLGATE.ACQUIRE" } else { "TOLLGATE.CHECK" });
    if question.cost != 1 {
        check.extend([Word::Is("COST"), Word::Is(&cost)]);
    }
    if leases {
        check.extend([Word::Is("LEASE"), Word::Lease]);
    }
    let mut probe = of("TOLLGATE.PEEK");
    probe.extend([Word::Is("COST"), Word::Is("0")]);
    let mut release = of("TOLLGATE.RELEASE");
    release.extend([Word::Is("LEASE"), Word::Lease]);
    (command(&probe), command(&check), command(&release))
}

fn throttle(question: &Question, keys: &Keys) -> Requests {
    let text = match &question.limited_by {
        LimitedBy::Limits(limits) | LimitedBy::Policy(limits) => limits,
    };
    let numbers = bucket(text).unwrap_or_default().map(|x| x.to_string());
    let cost = question.cost.to_string();
    let of = |cost| {
        let [burst, count, period] = numbers.each_ref().map(|each_ref| Word::Is(each_ref));
        let mut words = vec![Word::Is("CL.THROTTLE"), Word::Key(keys), burst, count, period];
        words.extend(Some(cost).filter(|x| *x != "1").map(Word::Is));
        command(&words)
    };
    (of("0"), of(&cost), Template::default())
}

fn counts(keys: &Keys) -> Requests {
    let increment = command(&[Word::Is("INCR"), Word::Minute(keys)]);
    let expire = command(&[Word::Is("EXPIRE"), Word::Minute(keys), Word::Is(counter::LIFE)]);
    // Two replies, as those of the counter; there is no key of minute 0 that could expire.
    (expire.clone().then(&expire), increment.then(&expire), Template::default())
}

/// What a server refused.
pub(super) fn refused(error: &[u8]) -> Reply {
    let kind = match error {
        error if error.starts_with(b"TRYAGAIN") || error.starts_with(b"LOADING") => {
            ErrorKind::Unavailable
        }
        _ => ErrorKind::Rejected,
    };
    Reply::Error(kind, String::from_utf8_lossy(error).into_owned())
}

/// The map of a decision, as pairs.
fn decision(cursor: &mut Cursor<'_>) -> Result<Option<Reply>, Stop> {
    let fields = match cursor.item()? {
        Item::Array(array) => array / 2,
        Item::Error(error) => return Ok(Some(refused(error))),
        _ => return Ok(None),
    };
    let (mut allowed, mut degraded, mut reason) = (None, false, "");
    let (mut time, mut delay) = (None, 0);
    for _ in 0..fields {
        let name = cursor.item()?;
        let value = cursor.item()?;
        match (name, value) {
            (Item::Bulk(b"allowed"), Item::Integer(integer)) => allowed = Some(integer == 1),
            (Item::Bulk(b"degraded"), Item::Integer(integer)) => degraded = integer == 1,
            (Item::Bulk(b"time_us"), Item::Integer(integer)) => time = u64::try_from(integer).ok(),
            (Item::Bulk(b"delay_us"), Item::Integer(integer)) => {
                delay = u64::try_from(integer).unwrap_or(0)
            }
            (Item::Bulk(b"reason"), Item::Bulk(bulk)) => {
                reason = std::str::from_utf8(bulk).unwrap_or_default();
            }
            (_, value) => cursor.skip_within(value, 8)?,
        }
    }
    let parts = allowed.zip(time);
    Ok(parts.map(|(allowed, time)| Reply::Answer(answer(allowed, degraded, reason, time, delay))))
}

/// The five integers of `CL.THROTTLE`, of which the first says whether it is limited.
fn throttled(cursor: &mut Cursor<'_>) -> Result<Option<Reply>, Stop> {
    match cursor.item()? {
        Item::Array(5) => {
            let limited = cursor.item()?;
            (0..4).try_for_each(|_| cursor.skip())?;
            let Item::Integer(limited) = limited else { return Ok(None) };
            Ok(Some(Reply::Answer(Answer::plain(limited == 0))))
        }
        Item::Error(error) => Ok(Some(refused(error))),
        _ => Ok(None),
    }
}

/// The text of each limit of a decision.
fn named_limits(cursor: &mut Cursor<'_>) -> Result<Vec<String>, Stop> {
    let Item::Array(fields) = cursor.item()? else { return Ok(Vec::new()) };
    let mut named = Vec::new();
    for _ in 0..fields / 2 {
        let (name, value) = (cursor.item()?, cursor.item()?);
        let (Item::Bulk(b"limits"), Item::Array(limits)) = (name, value) else {
            cursor.skip_within(value, 8)?;
            continue;
        };
        for _ in 0..limits {
            let Item::Array(parts) = cursor.item()? else { return Ok(named) };
            for _ in 0..parts / 2 {
                match (cursor.item()?, cursor.item()?) {
                    (Item::Bulk(b"limit"), Item::Bulk(text)) => {
                        named.push(String::from_utf8_lossy(text).into_owned());
                    }
                    (_, value) => cursor.skip_within(value, 8)?,
                }
            }
        }
    }
    Ok(named)
}
