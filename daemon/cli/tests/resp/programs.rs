//! Programs with redis-py (handshake, pipelines in transactions, the connection pool), two major
//! versions of ioredis (the ready check, pipelines, automatic pipelines), node-redis, go-redis and
//! Jedis.

use std::process::Command;

use tollgate_testkit::ClientKind;

use crate::go::GoProgram;
use crate::process::{SECRET, TOKENS, check_lines, printed, repository};
use crate::start;

const CLIENTS: &str = "daemon/cli/tests/resp/clients";

/// Runs a program with the ports of a daemon and of one that requires the token.
fn check(kind: ClientKind, program: &str, variant: &str, expected: &str) {
    let Some(mut command) = kind.command() else { return };
    command.arg(repository(&format!("{CLIENTS}/{program}")));
    check_command(command, variant, expected);
}

fn check_command(mut command: Command, variant: &str, expected: &str) {
    let (daemon, guarded) = (start(""), start(TOKENS));
    command.args([variant, &daemon.port().to_string(), &guarded.port().to_string(), SECRET]);
    check_lines(&printed(command, b""), expected);
}

/// The output with both versions of the protocol.
const REDIS_PY: &str = "
ping True b'hello'
named shop
its library redis-py
ids differ True
database 0 True
database 1 ResponseError: DB index is out of range: \"1\"
by URL True
health None
fresh [0, 16, 15, -1, 120]
again [0, 16, 0, -1, 1920]
denied [1, 16, 0, 120, 1920]
too much [1, 16, 0, -1]
exists 1 0
lives True -2
deleted 1 0
fresh [0, 16, 15, -1, 120]
too few ResponseError: wrong number of arguments for 'cl.throttle' command
transaction [0, 0, 1]
around a failure 1 4 of 5 ResponseError 1 3 of 5
in order True 1500
key 1 4 of 5
key 1 3 of 5
key 1 4 of 5
key 1 4 of 5
no key ResponseError: the key is empty
as text 1 3 of 5 api store
cost 1 2 of 5
peek 0 2 of 5
take 2
denied 0 0 of 5
unknown ResponseError: there is no policy \"no-such-policy\"
not ours ResponseError: unknown command 'GET', with args beginning with: 'k'
at once 1000
no token: AuthenticationError
another: AuthenticationError
the token: no failure but '1 4 of 5'
by its name: no failure but '1 3 of 5'
by another: AuthenticationError
";

#[test]
fn redis_py_works_over_resp2() {
    check(ClientKind::Python, "redis_py.py", "2", REDIS_PY);
}

#[test]
fn redis_py_works_over_resp3() {
    check(ClientKind::Python, "redis_py.py", "3", REDIS_PY);
}

const IOREDIS: &str = "
ready ready PONG hello
loading true
named shop
fresh [ 0, 16, 15, -1, 120 ]
denied 1
exists 1 1
key 1 4 of 5
key 1 3 of 5
key 1 4 of 5
in order true 1000 1500
around a failure [ '1 4 of 5', 'ReplyError', '1 3 of 5' ]
unknown ReplyError: ERR there is no policy \"no-such-policy\"
in one pipeline 1000
the token: no failure
by its name: no failure
another: ReplyError: WRONGPASS
no token: ReplyError: NOAUTH
quit OK
";

#[test]
fn ioredis_5_works() {
    check(ClientKind::Node, "ioredis.js", "ioredis5", IOREDIS);
}

#[test]
fn ioredis_6_works() {
    check(ClientKind::Node, "ioredis.js", "ioredis6", IOREDIS);
}

const NODE_REDIS: &str = "
ready true PONG hello
named shop
database 1 SimpleError: ERR DB index is out of range: \"1\"
by URL PONG
fresh [ 0, 16, 15, -1, 120 ]
denied 1
exists 1 1
key 1 4 of 5
key 1 3 of 5
key 1 4 of 5
in order true 1000 1500
around a failure [ '1 4 of 5', 'error', '1 3 of 5' ]
unknown SimpleError: ERR there is no policy \"no-such-policy\"
the token: no failure 1 4 of 5
by its name: no failure 1 3 of 5
another: SimpleError: WRONGPASS
no token: SimpleError: NOAUTH
quit undefined
";

#[test]
fn node_redis_works_over_resp2() {
    check(ClientKind::Node, "node_redis.js", "2", NODE_REDIS);
}

#[test]
fn node_redis_works_over_resp3() {
    check(ClientKind::Node, "node_redis.js", "3", NODE_REDIS);
}

const GO_REDIS: &str = "
ping PONG hello
named shop
database 1 ERR DB index is out of range: \"1\"
by URL PONG
fresh [0 16 15 -1 120]
denied 1
exists 1 1
key 1 4 of 5
key 1 3 of 5
key 1 4 of 5
in order true 1000 1500 <nil>
pipeline 1 4 of 5
pipeline ERR there is no policy \"no-such-policy\"
pipeline 1 3 of 5
transaction 1 4 of 5
transaction ERR there is no policy \"no-such-policy\"
transaction 1 3 of 5
through a pool 1000
unknown ERR there is no policy \"no-such-policy\"
the token: 1 4 of 5
by its name: 1 3 of 5
another: WRONGPASS
no token: NOAUTH
closed <nil>
";

#[test]
fn go_redis_works_over_both_versions() {
    let Some(program) = GoProgram::compile(&format!("{CLIENTS}/go_redis")) else { return };
    for version in ["2", "3"] {
        check_command(program.command(), version, GO_REDIS);
    }
}

const JEDIS: &str = "
ping PONG hello
named shop
database 1 JedisDataException: ERR DB index is out of range: \"1\"
fresh [0, 16, 15, -1, 120]
denied 1
exists true 1
key 1 4 of 5
key 1 3 of 5
key 1 4 of 5
in order true 1000 1500
transaction 1 4 of 5
transaction JedisDataException: ERR there is no policy \"no-such-policy\"
transaction 1 3 of 5
through a pool 1000
unknown JedisDataException: ERR there is no policy \"no-such-policy\"
the token: 1 4 of 5
by its name: 1 3 of 5
another: JedisAccessControlException: WRONGPASS
no token: JedisAccessControlException: NOAUTH
closed
";

/// `cargo xtask test --peers` downloads Jedis; without it the test is skipped.
#[test]
fn jedis_works_over_both_versions() {
    let archives = repository("target/tools/jedis");
    if !archives.is_dir() {
        return eprintln!("SKIPPED: Jedis is not installed; cargo xtask test --peers downloads it");
    }
    for version in ["2", "3"] {
        let mut java = Command::new("java");
        java.arg("-cp").arg(archives.join("*"));
        java.arg(repository(&format!("{CLIENTS}/Jedis.java")));
        check_command(java, version, JEDIS);
    }
}
