//! redis-py: handshake, pipelines in transactions and the connection pool.

use tollgate_testkit::ClientKind;

use crate::daemon::Daemon;
use crate::process::SECRET;
use crate::script::{check_lines, printed};

/// The output with both versions of the protocol.
const EXPECTED: &str = "
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

fn check(protocol: &str) {
    let Some(mut python) = ClientKind::Python.command() else { return };
    let (daemon, guarded) = (Daemon::start(), Daemon::guarded());
    python.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/resp/clients/redis_py.py"));
    python.args([&daemon.port.to_string(), protocol, &guarded.port.to_string(), SECRET]);
    check_lines(&printed(python, b""), EXPECTED);
}

#[test]
fn redis_py_works_over_resp2() {
    check("2");
}

#[test]
fn redis_py_works_over_resp3() {
    check("3");
}
