//! Programs with redis-py (handshake, pipelines in transactions, the connection pool) and two major
//! versions of ioredis (the ready check, pipelines, automatic pipelines).

use tollgate_testkit::ClientKind;

use crate::process::{SECRET, TOKENS, check_lines, printed};
use crate::start;

/// Runs a program with the ports of a daemon and of one that requires the token.
fn check(kind: ClientKind, program: &str, variant: &str, expected: &str) {
    let Some(mut command) = kind.command() else { return };
    let (daemon, guarded) = (start(""), start(TOKENS));
    command.arg(format!("{}/tests/resp/clients/{program}", env!("CARGO_MANIFEST_DIR")));
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
