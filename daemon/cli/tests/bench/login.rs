//! Passwords and tokens.

use tollgate_testkit::Server;

use crate::process::{Daemon, SECRET, TOKENS};
use crate::tool::bench;

fn check(words: &str, expected: Result<(), &str>) {
    let (code, output, error) = bench(&format!("{words} -n 5 -c 2"));
    match expected {
        Ok(()) => assert_eq!(code, 0, "{words}: {output}{error}"),
        Err(part) => assert!(code == 2 && error.contains(part), "{words}: {output}{error}"),
    }
}

#[test]
fn each_protocol_sends_the_token() {
    let config = format!("policies: {{ api: {{ limits: [5/d log] }} }}\n{TOKENS}");
    for (flag, scheme, refusal) in [
        ("--http", "http", "401"),
        ("--grpc", "grpc", "grpc-status 16"),
        ("--resp", "redis", "NOAUTH"),
    ] {
        let daemon = Daemon::with_listener(flag, &[("tollgate.yaml", &config)]);
        let address = daemon.address();
        let target = format!("{scheme}://{address} --policy api");
        check(&format!("{target} --password {SECRET}"), Ok(()));
        check(&format!("{scheme}://:{SECRET}@{address} --policy api"), Ok(()));
        check(&target, Err(refusal));
        check(&format!("{target} --password wrong"), Err("127.0.0.1"));
    }
    let daemon = Daemon::with_listener("--resp", &[("tollgate.yaml", &config)]);
    let target = format!("{} --policy api", daemon.url);
    check(&format!("{target} --user gateway --password {SECRET}"), Ok(()));
    check(&format!("{target} --user other --password {SECRET}"), Err("WRONGPASS"));
}

#[test]
fn a_redis_server_gets_the_password() {
    let server = Server::with(|config| config.password("open@sesame"));
    let target = format!("redis://127.0.0.1:{} --threshold 3", server.port());
    check(&format!("{target} --password \"open@sesame\""), Ok(()));
    check(&format!("redis://:open%40sesame@127.0.0.1:{} --threshold 3", server.port()), Ok(()));
    check(&target, Err("NOAUTH"));
}
