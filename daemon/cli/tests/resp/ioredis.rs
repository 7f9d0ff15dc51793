//! Two major versions of ioredis: the ready check, pipelines and automatic pipelines.

use tollgate_testkit::ClientKind;

use crate::daemon::Daemon;
use crate::process::SECRET;
use crate::script::{check_lines, printed};

const EXPECTED: &str = "
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

fn check(module: &str) {
    let Some(mut node) = ClientKind::Node.command() else { return };
    let (daemon, guarded) = (Daemon::start(), Daemon::guarded());
    node.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/resp/clients/ioredis.js"));
    node.args([module, &daemon.port.to_string(), &guarded.port.to_string(), SECRET]);
    check_lines(&printed(node, b""), EXPECTED);
}

#[test]
fn ioredis_5_works() {
    check("ioredis5");
}

#[test]
fn ioredis_6_works() {
    check("ioredis6");
}
