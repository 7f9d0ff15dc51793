//! What a command of ours says beside its policy and key: words with a value each.

use std::ops::Deref;

use tollgate::{Cost, Id, Key, Micros, Policy, ResolveError};
use tollgate_core::MAX_REQUEST_ID_LEN;

use super::asking::{Asking, Scene};
use super::failure::{Failure, shown};
use super::word::Word;
use crate::config::Scope;
use crate::nearest::did_you_mean;

/// A policy in the form that it has for the key, or one that limits in its place make.
#[derive(Clone, Debug)]
pub(super) enum Resolved<'a> {
    Configured(&'a Policy),
    Inline(Policy),
}

impl Deref for Resolved<'_> {
    type Target = Policy;

    #[inline]
    fn deref(&self) -> &Policy {
        match self {
            Resolved::Configured(configured) => configured,
            Resolved::Inline(inline) => inline,
        }
    }
}

/// A check as it was asked.
#[derive(Clone, Debug)]
pub(super) struct Asked<'s, 'a> {
    pub(super) policy: Resolved<'a>,
    pub(super) key: Key<'s>,
    pub(super) cost: Cost,
}

/// What a command of ours says.
#[derive(Debug)]
pub(super) struct Given<'s, 'a> {
    pub(super) first: Asked<'s, 'a>,
    /// Those after `AND`.
    pub(super) more: Vec<Asked<'s, 'a>>,
    pub(super) own: Own<'s>,
}

/// What is said of the request as a whole.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Own<'s> {
    pub(super) request_id: Option<&'s [u8]>,
    pub(super) max_wait: Option<Micros>,
    pub(super) span: Option<Micros>,
    pub(super) time: Option<Micros>,
    pub(super) lease: Option<Id>,
    pub(super) reservation: Option<Id>,
}

/// Names a check: its policy, or limits in the place of one, and its key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Subject<'s> {
    pub(super) policy: &'s [u8],
    is_inline: bool,
    pub(super) key: &'s [u8],
    /// Where what follows begins.
    next: usize,
}

impl<'s> Subject<'s> {
    /// Reads `policy key`, or `LIMIT limits key`.
    pub(super) fn read(asking: &Asking<'s, '_>, at: usize) -> Result<Self, Failure> {
        let first = asking.args.get(at).unwrap_or_default();
        let is_inline = first.eq_ignore_ascii_case(b"LIMIT");
        let at = at + usize::from(is_inline);
        match (asking.args.get(at), asking.args.get(at + 1)) {
            (Some(policy), Some(key)) => Ok(Subject { policy, is_inline, key, next: at + 2 }),
            _ => Err(asking.wrong_number()),
        }
    }

    fn resolve<'a>(
        &self,
        tier: Option<&'s [u8]>,
        scene: &Scene<'a>,
    ) -> Result<Resolved<'a>, Failure> {
        let who = scene.known()?;
        if self.is_inline {
            who.must_have(&[Scope::Operate], "a limit in place of a policy")?;
            if tier.is_some() {
                return Err(Failure::bad("LIMIT and TIER are both there; only a policy has tiers"));
            }
            let limits = text("LIMIT", self.policy)?;
            let made = scene.daemon.limiter().limit(limits);
            let made = made.map_err(|error| Failure::bad(format!("LIMIT: {error}")))?;
            who.must_be_for(made.name())?;
            return Ok(Resolved::Inline(made));
        }
        let name = text("policy", self.policy)?;
        who.must_be_for(name)?;
        let tier = tier.map(|tier| text("TIER", tier)).transpose()?;
        match scene.live.policies.resolve(name, self.key, tier) {
            Ok(resolve) => Ok(Resolved::Configured(resolve)),
            Err(error) => Err(unknown(error, name, scene)),
        }
    }
}

/// That there is no such policy, or no such tier.
#[cold]
fn unknown(error: ResolveError, name: &str, scene: &Scene<'_>) -> Failure {
    let said = error.to_string();
    let named = scene.live.names_of_policies().filter(|_| name.is_empty());
    Failure::bad(named.map_or(said.clone(), |named| format!("{said}; there are {named}")))
}

impl<'s, 'a> Given<'s, 'a> {
    /// Reads all arguments, of which no other words than `words` may be there.
    pub(super) fn read(
        asking: &Asking<'s, 'a>,
        words: &[Word],
        takes_several: bool,
    ) -> Result<Self, Failure> {
        let mut own = Own::default();
        let mut read = Reading { asking, words, at: 1, own: &mut own };
        let first = read.check(true)?;
        let mut more = Vec::new();
        while let Some(and) = asking.args.get(read.at) {
            if !takes_several {
                let detail = format!("{} takes one check", asking.command.name);
                return Err(Failure::bad(format!("{detail}; {} begins another", shown(and))));
            }
            let most = asking.scene.live.bounds.checks;
            if more.len() + 1 >= most {
                let detail = format!("more than {most} checks are too many; send several requests");
                return Err(Failure::bad(detail));
            }
            read.at += 1;
            more.push(read.check(false)?);
        }
        Ok(Given { first, more, own })
    }
}

/// Reading the arguments, one after the other.
struct Reading<'r, 's, 'a> {
    asking: &'r Asking<'s, 'a>,
    words: &'r [Word],
    at: usize,
    own: &'r mut Own<'s>,
}

impl<'s, 'a> Reading<'_, 's, 'a> {
    /// Reads a check up to `AND` or the end.
    fn check(&mut self, is_first: bool) -> Result<Asked<'s, 'a>, Failure> {
        let subject = Subject::read(self.asking, self.at)?;
        self.at = subject.next;
        let (mut cost, mut tier) = (Cost::ONE, None);
        while let Some(word) = self.asking.args.get(self.at) {
            if word.eq_ignore_ascii_case(b"AND") {
                break;
            }
            let word = self.word(word, is_first)?;
            let Some(value) = self.asking.args.get(self.at + 1) else {
                let word = word.as_str();
                return Err(Failure::bad(format!("{word} is the last word; write its value")));
            };
            self.at += 2;
            match word {
                Word::Cost => cost = cost_of(value)?,
                Word::Tier => tier = Some(value),
                Word::Note => drop(text("NOTE", value)?),
                word => self.own.take(word, value)?,
            }
        }
        let policy = subject.resolve(tier, self.asking.scene)?;
        Ok(Asked { policy, key: self.asking.key(subject.key)?, cost })
    }

    fn word(&self, text: &[u8], is_first: bool) -> Result<Word, Failure> {
        let known = Word::of(text).filter(|x| self.words.contains(x));
        let Some(word) = known else { return Err(self.unknown(text)) };
        let is_of_a_check = matches!(word, Word::Cost | Word::Tier | Word::Note | Word::Id);
        if !is_first && !is_of_a_check {
            let word = word.as_str();
            return Err(Failure::bad(format!("{word} is of all checks; write it before AND")));
        }
        Ok(word)
    }

    #[cold]
    fn unknown(&self, text: &[u8]) -> Failure {
        let words = self.words.iter().map(|word| word.as_str());
        let upper = String::from_utf8_lossy(text).to_ascii_uppercase();
        let hint = did_you_mean(&upper, words.clone()).unwrap_or_else(|| {
            format!("after policy and key it takes {}", words.collect::<Vec<_>>().join(", "))
        });
        let name = self.asking.command.name;
        Failure::bad(format!("{name} has no word {}; {hint}", shown(text)))
    }
}

impl<'s> Own<'s> {
    fn take(&mut self, word: Word, value: &'s [u8]) -> Result<(), Failure> {
        let name = word.as_str();
        match word {
            Word::Id if (1..=MAX_REQUEST_ID_LEN).contains(&value.len()) => {
                self.request_id = Some(value);
            }
            Word::Id => {
                return Err(Failure::bad(format!(
                    "ID has {} bytes; write 1 to {MAX_REQUEST_ID_LEN} that no other request has",
                    value.len()
                )));
            }
            Word::MaxWait => self.max_wait = Some(micros(name, value)?),
            Word::For => self.span = Some(micros(name, value)?),
            Word::Time => self.time = Some(micros(name, value)?),
            Word::Lease => self.lease = Some(id(name, value)?),
            Word::Reservation => self.reservation = Some(id(name, value)?),
            Word::Cost | Word::Tier | Word::Note => {}
        }
        Ok(())
    }

    /// The id that a command must have.
    pub(super) fn needed(id: Option<Id>, word: Word) -> Result<Id, Failure> {
        id.ok_or_else(|| {
            let word = word.as_str();
            let remedy = "write the one that was answered, 32 hexadecimal digits";
            Failure::bad(format!("{word} is missing; {remedy}"))
        })
    }
}

fn text<'s>(name: &str, bytes: &'s [u8]) -> Result<&'s str, Failure> {
    std::str::from_utf8(bytes)
        .map_err(|_| Failure::bad(format!("{name} is {}; write it in UTF-8", shown(bytes))))
}

/// A number in digits alone.
fn digits(bytes: &[u8]) -> Option<u64> {
    let is_plain = !bytes.is_empty() && bytes.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(bytes).ok().filter(|_| is_plain)?.parse().ok()
}

fn cost_of(bytes: &[u8]) -> Result<Cost, Failure> {
    digits(bytes).and_then(Cost::new).ok_or_else(|| {
        let remedy = "write an integer from 0 to 9007199254740991, such as 1";
        Failure::bad(format!("COST is {}; {remedy}", shown(bytes)))
    })
}

fn micros(name: &str, bytes: &[u8]) -> Result<Micros, Failure> {
    digits(bytes).map(Micros::new).ok_or_else(|| {
        let remedy = "write microseconds in digits, such as 1500000";
        Failure::bad(format!("{name} is {}; {remedy}", shown(bytes)))
    })
}

fn id(name: &str, bytes: &[u8]) -> Result<Id, Failure> {
    std::str::from_utf8(bytes).ok().and_then(|x| x.parse().ok()).ok_or_else(|| {
        Failure::bad(format!("{name} is {}; an id is 32 hexadecimal digits", shown(bytes)))
    })
}
