//! Commands: the table, the arguments, and the implementations by topic.

mod connection;
mod hashes;
mod keys;
mod scripts;
mod server;
mod sorted_sets;
mod strings;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use tollgate_testkit::Reply;

use crate::keyspace::{Entry, Keyspace, Value};
use crate::node::{Effect, Node, Session};

/// The text of an error reply.
pub(crate) type Error = Cow<'static, str>;
pub(crate) type Outcome = Result<Reply, Error>;

pub(crate) const WRONG_TYPE: Error =
    Cow::Borrowed("WRONGTYPE Operation against a key holding the wrong kind of value");
const SYNTAX: Error = Cow::Borrowed("ERR syntax error");
const NOT_INTEGER: Error = Cow::Borrowed("ERR value is not an integer or out of range");
const NOT_FLOAT: Error = Cow::Borrowed("ERR value is not a valid float");
const NO_CLUSTER: Error = Cow::Borrowed("ERR This instance has cluster support disabled");

/// A command.
#[derive(Debug)]
pub(crate) struct Command {
    /// The name in lower case; `container|subcommand` for a subcommand.
    pub(crate) name: &'static str,
    /// The number of words; if negative, at least that many.
    arity: isize,
    flags: u16,
    keys: Keys,
    run: fn(&mut Context<'_>, &[Vec<u8>]) -> Outcome,
}

/// The words of a command that are keys.
#[derive(Clone, Copy, Debug)]
enum Keys {
    None,
    First,
    /// All words after the name.
    All,
    /// As many as the third word states, from the fourth word on.
    Counted,
}

/// Changes data.
pub(crate) const WRITE: u16 = 1;
/// Is rejected when the memory is full.
pub(crate) const DENY_OOM: u16 = 2;
/// Is executed while the server loads its data.
pub(crate) const LOADING: u16 = 4;
/// Is executed by a replica without a connection to its primary.
pub(crate) const STALE: u16 = 8;
/// Is executed before authentication.
pub(crate) const NO_AUTH: u16 = 16;
/// Is executed while a script runs for too long.
pub(crate) const ALLOW_BUSY: u16 = 32;
/// Cannot be called by a script.
pub(crate) const NO_SCRIPT: u16 = 64;
/// Is available on a sentinel.
const SENTINEL: u16 = 128;
/// Is available on a sentinel only.
const ONLY_SENTINEL: u16 = 256;
const ALWAYS: u16 = LOADING | STALE;
const LOGIN: u16 = ALWAYS | NO_AUTH | ALLOW_BUSY | NO_SCRIPT | SENTINEL;
const SESSION: u16 = ALWAYS | NO_SCRIPT | SENTINEL;

const fn command(
    name: &'static str,
    arity: isize,
    flags: u16,
    keys: Keys,
    run: fn(&mut Context<'_>, &[Vec<u8>]) -> Outcome,
) -> Command {
    Command { name, arity, flags, keys, run }
}

/// All commands, by name.
pub(crate) const COMMANDS: [Command; 45] = [
    command("asking", 1, 0, Keys::None, connection::asking),
    command("auth", -2, LOGIN, Keys::None, connection::auth),
    command("client|getname", 2, SESSION, Keys::None, connection::client_getname),
    command("client|id", 2, SESSION, Keys::None, connection::client_id),
    command("client|setname", 3, SESSION, Keys::None, connection::client_setname),
    command("cluster|info", 2, STALE, Keys::None, server::cluster_info),
    command("cluster|myid", 2, STALE, Keys::None, server::cluster_myid),
    command("cluster|nodes", 2, STALE, Keys::None, server::cluster_nodes),
    command("cluster|slots", 2, STALE, Keys::None, server::cluster_slots),
    command("del", -2, WRITE, Keys::All, keys::del),
    command("evalsha", -3, STALE | NO_SCRIPT, Keys::Counted, scripts::evalsha),
    command("exists", -2, 0, Keys::All, keys::exists),
    command("fcall", -3, STALE | NO_SCRIPT, Keys::Counted, scripts::fcall),
    command("function|flush", -2, WRITE | NO_SCRIPT, Keys::None, scripts::function_flush),
    command("function|load", -3, WRITE | DENY_OOM | NO_SCRIPT, Keys::None, scripts::function_load),
    command("get", 2, 0, Keys::First, strings::get),
    command("hdel", -3, WRITE, Keys::First, hashes::hdel),
    command("hello", -1, LOGIN, Keys::None, connection::hello),
    command("hget", 3, 0, Keys::First, hashes::hget),
    command("hgetall", 2, 0, Keys::First, hashes::hgetall),
    command("hmget", -3, 0, Keys::First, hashes::hmget),
    command("hset", -4, WRITE | DENY_OOM, Keys::First, hashes::hset),
    command("info", -1, ALWAYS | SENTINEL, Keys::None, server::info),
    command("mget", -2, 0, Keys::All, strings::mget),
    command("pexpire", -3, WRITE, Keys::First, keys::pexpire),
    command("pexpireat", -3, WRITE, Keys::First, keys::pexpireat),
    command("ping", -1, SENTINEL, Keys::None, connection::ping),
    command("pttl", 2, 0, Keys::First, keys::pttl),
    command("role", 1, ALWAYS | NO_SCRIPT | SENTINEL, Keys::None, server::role),
    command("script|exists", -3, NO_SCRIPT, Keys::None, scripts::script_exists),
    command("script|flush", -2, NO_SCRIPT, Keys::None, scripts::script_flush),
    command("script|load", 3, STALE | NO_SCRIPT, Keys::None, scripts::script_load),
    command("select", 2, ALWAYS, Keys::None, connection::select),
    command(
        "sentinel|get-master-addr-by-name",
        3,
        SENTINEL | ONLY_SENTINEL,
        Keys::None,
        server::get_master_addr_by_name,
    ),
    command("set", -3, WRITE | DENY_OOM, Keys::First, strings::set),
    command("time", 1, ALWAYS, Keys::None, server::time),
    command("type", 2, 0, Keys::First, keys::type_name),
    command("zadd", -4, WRITE | DENY_OOM, Keys::First, sorted_sets::zadd),
    command("zcard", 2, 0, Keys::First, sorted_sets::zcard),
    command("zcount", 4, 0, Keys::First, sorted_sets::zcount),
    command("zrange", -4, 0, Keys::First, sorted_sets::zrange),
    command("zrangebyscore", -4, 0, Keys::First, sorted_sets::zrangebyscore),
    command("zrem", -3, WRITE, Keys::First, sorted_sets::zrem),
    command("zrevrangebyscore", -4, 0, Keys::First, sorted_sets::zrevrangebyscore),
    command("zscore", 3, 0, Keys::First, sorted_sets::zscore),
];

impl Command {
    /// Finds the command that the words call.
    pub(crate) fn find(words: &[Vec<u8>], is_sentinel: bool) -> Result<&'static Command, Error> {
        let is_known = |command: &&Command| {
            if is_sentinel { command.has(SENTINEL) } else { !command.has(ONLY_SENTINEL) }
        };
        let mut known = COMMANDS.iter().filter(is_known);
        let found = known.clone().find(|command| command.is_called_by(words));
        found.ok_or_else(|| unknown(words, known.any(|command| command.is_in(&words[0]))))
    }

    /// Returns whether this is a subcommand of a container.
    fn is_in(&self, container: &[u8]) -> bool {
        self.name.split_once('|').is_some_and(|(name, _)| is_word(container, name))
    }

    fn is_called_by(&self, words: &[Vec<u8>]) -> bool {
        match (self.name.split_once('|'), words) {
            (None, [name, ..]) => is_word(name, self.name),
            (Some((container, name)), [first, second, ..]) => {
                is_word(first, container) && is_word(second, name)
            }
            _ => false,
        }
    }

    pub(crate) fn has(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }

    /// Returns the flags, which for a call of a known script or function are those of the script.
    pub(crate) fn flags(&self, words: &[Vec<u8>], node: &Node) -> u16 {
        let is_known = match self.name {
            "evalsha" => node.scripts.contains(&lower(&words[1])),
            "fcall" => node.functions.contains(&*String::from_utf8_lossy(&words[1])),
            _ => false,
        };
        if is_known { WRITE | DENY_OOM | NO_SCRIPT } else { self.flags }
    }

    pub(crate) fn check_arity(&self, words: &[Vec<u8>]) -> Result<(), Error> {
        let is_right = match usize::try_from(self.arity) {
            Ok(exactly) => words.len() == exactly,
            Err(_) => words.len() >= self.arity.unsigned_abs(),
        };
        if is_right { Ok(()) } else { Err(wrong_arity(self.name)) }
    }

    /// Returns the keys among the words.
    pub(crate) fn keys<'a>(&self, words: &'a [Vec<u8>]) -> &'a [Vec<u8>] {
        match self.keys {
            Keys::None => &[],
            Keys::First => &words[1..2],
            Keys::All => &words[1..],
            Keys::Counted => {
                let count = integer(&words[2]).ok().and_then(|count| usize::try_from(count).ok());
                count.and_then(|count| words[3..].get(..count)).unwrap_or_default()
            }
        }
    }

    /// Runs the command, and records its effect for replicas.
    pub(crate) fn run(&self, node: &mut Node, session: &mut Session, words: &[Vec<u8>]) -> Outcome {
        let database = session.database;
        let mut context = Context { node, session, rewritten: None };
        let reply = (self.run)(&mut context, words)?;
        let rewritten = context.rewritten.take();
        if self.has(WRITE) && node.records_effects {
            let words = rewritten.unwrap_or_else(|| words.to_vec());
            if !words.is_empty() {
                node.effects.push(Effect::Command { database, words });
            }
        }
        Ok(reply)
    }
}

fn lower(word: &[u8]) -> String {
    String::from_utf8_lossy(word).to_lowercase()
}

fn wrong_arity(name: &str) -> Error {
    format!("ERR wrong number of arguments for '{name}' command").into()
}

fn unknown(words: &[Vec<u8>], is_container: bool) -> Error {
    let text = |word: &Vec<u8>| String::from_utf8_lossy(word).into_owned();
    match (is_container, words) {
        (true, [container]) => wrong_arity(&lower(container)),
        (true, [container, subcommand, ..]) => {
            let (container, subcommand) = (text(container).to_uppercase(), text(subcommand));
            format!("ERR unknown subcommand '{subcommand}'. Try {container} HELP.").into()
        }
        _ => {
            let arguments: String =
                words[1..].iter().map(|word| format!("'{}' ", text(word))).collect();
            let name = text(&words[0]);
            format!("ERR unknown command '{name}', with args beginning with: {arguments}").into()
        }
    }
}

/// What a command can use.
#[derive(Debug)]
pub(crate) struct Context<'a> {
    pub(crate) node: &'a mut Node,
    pub(crate) session: &'a mut Session,
    /// The words that replicas execute in place of the command; empty if it changed nothing.
    rewritten: Option<Vec<Vec<u8>>>,
}

impl Context<'_> {
    /// Returns the time of the server in ms since the epoch.
    fn now(&self) -> u64 {
        self.node.expiry_time()
    }

    fn keyspace(&mut self) -> &mut Keyspace {
        &mut self.node.databases[self.session.database]
    }

    fn value(&mut self, key: &[u8]) -> Option<&Value> {
        let now = self.now();
        self.keyspace().get(key, now).map(|entry| &entry.value)
    }

    /// Returns the value of a key, which is created if it does not exist.
    fn value_or_insert(&mut self, key: &[u8], empty: Value) -> &mut Value {
        let (now, database) = (self.now(), self.session.database);
        if self.keyspace().get(key, now).is_none() {
            if self.node.records_effects {
                // The key may have expired by the clock of this server, but not by that of a replica.
                let words = vec![b"DEL".to_vec(), key.to_vec()];
                self.node.effects.push(Effect::Command { database, words });
            }
            self.keyspace().insert(key, Entry { value: empty, expires_at: None });
        }
        &mut self.keyspace().get_mut(key, now).expect("the key exists").value
    }

    fn rewrite(&mut self, words: &[&[u8]]) {
        self.rewritten = Some(words.iter().map(|word| word.to_vec()).collect());
    }

    /// States that the command changed nothing.
    fn rewrite_to_nothing(&mut self) {
        self.rewrite(&[]);
    }
}

/// Parses an integer as Redis does: without a plus sign or leading zeros.
fn integer(word: &[u8]) -> Result<i64, Error> {
    let text = str::from_utf8(word).map_err(|_| NOT_INTEGER)?;
    let number: i64 = text.parse().map_err(|_| NOT_INTEGER)?;
    if number.to_string() == text { Ok(number) } else { Err(NOT_INTEGER) }
}

/// Returns the range of indices from `start` to `end` inclusive; negative ones count from the end.
fn index_range(start: i64, end: i64, len: usize) -> std::ops::Range<usize> {
    let count = i64::try_from(len).expect("a length fits i64");
    let absolute = |index: i64| if index < 0 { index.saturating_add(count) } else { index };
    let start = absolute(start).clamp(0, count);
    let end = absolute(end).clamp(-1, count - 1) + 1;
    let to_index = |index: i64| usize::try_from(index).expect("an index is not negative");
    to_index(start)..to_index(end.max(start))
}

fn count(number: usize) -> Reply {
    Reply::Integer(i64::try_from(number).expect("a count fits i64"))
}

fn bulk(text: impl AsRef<[u8]>) -> Reply {
    Reply::Bulk(text.as_ref().to_vec())
}

fn is_word(word: &[u8], name: &str) -> bool {
    word.eq_ignore_ascii_case(name.as_bytes())
}
