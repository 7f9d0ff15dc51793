//! The table of commands is that of a real server.

use tollgate_testkit::{Reply, Server};

use super::*;

const FLAGS: [(u16, &str); 7] = [
    (WRITE, "write"),
    (DENY_OOM, "denyoom"),
    (LOADING, "loading"),
    (STALE, "stale"),
    (NO_AUTH, "no_auth"),
    (ALLOW_BUSY, "allow_busy"),
    (NO_SCRIPT, "noscript"),
];

/// Returns the arity, the flags, and the first key, the last key and the step.
fn describe(command: &Command) -> (i64, Vec<&'static str>, [i64; 3]) {
    let flags = FLAGS.into_iter().filter(|(flag, _)| command.has(*flag)).map(|(_, name)| name);
    let keys = match command.keys {
        Keys::None | Keys::Counted => [0, 0, 0],
        Keys::First => [1, 1, 1],
        Keys::All => [1, -1, 1],
    };
    (i64::try_from(command.arity).unwrap(), flags.collect(), keys)
}

#[test]
fn commands_equal_those_of_a_real_server() {
    let server = Server::start();
    if !server.command(&["INFO", "server"]).text().contains("redis_version:7.0.") {
        eprintln!("skipped: the server is not Redis 7.0");
        return;
    }
    for command in COMMANDS.iter().filter(|command| !command.has(ONLY_SENTINEL)) {
        let reply = server.command(&["COMMAND", "INFO", command.name]);
        let info = reply.array()[0].array();
        let has = |name: &str| info[2].array().iter().any(|flag| flag.text() == name);
        let flags = FLAGS.into_iter().map(|(_, name)| name).filter(|name| has(name)).collect();
        let keys = [3, 4, 5].map(|field: usize| info[field].integer());
        assert_eq!(describe(command), (info[1].integer(), flags, keys), "{}", command.name);
        assert_eq!(info[0], Reply::Bulk(command.name.as_bytes().to_vec()));
    }
}
