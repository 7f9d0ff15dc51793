//! The pages about migration from other limiters.

use tollgate_testkit::{ClientKind, Server};

use crate::client;
use crate::process::{Daemon, page_block, printed, read_repository};

#[test]
fn redis_cell_page_has_the_shown_reply() {
    let Some(mut redis_cli) = ClientKind::RedisCli.command() else { return };
    let server = Server::start();
    let page = read_repository("docs/migration/redis-cell.md");
    let (_, after) = page.split_once("## After").unwrap();
    let config = page_block(after, "tollgate.yaml");
    let config = config.replace("redis://127.0.0.1:6379", &server.url());
    let daemon = Daemon::with_listener("--resp", &[("tollgate.yaml", &config)]);
    let (_, commands) = after.split_once("```sh\nredis-cli -p 6380 ").unwrap();
    let (command, rest) = commands.split_once("\n```").unwrap();
    redis_cli.args(["--no-raw", "-p", &daemon.port().to_string()]).args(command.split(' '));
    assert_eq!(printed(redis_cli, b""), page_block(&format!("`text`{rest}"), "text"));
    assert!(!server.keys("tollgate").is_empty(), "the state is on Redis");
}

#[test]
fn limitador_page_has_the_limits_of_limitador() {
    let page = read_repository("docs/migration/limitador.md");
    let limits = page_block(&page, "limits.yaml");
    let config = page_block(&page, "tollgate.yaml");
    let files = [("limits.yaml", &*limits), ("tollgate.yaml", &*config)];
    let daemon = Daemon::with_listener("--http", &files);
    let send = |method: &str, user: &str| {
        let entry = |key: &str, value: &str| format!(r#"{{"key":"{key}","value":"{value}"}}"#);
        let (all, method, user) =
            (entry("all", "1"), entry("req.method", method), entry("user_id", user));
        let body = format!(
            r#"{{"domain":"shop","descriptors":[{{"entries":[{all}]}},{{"entries":[{method},{user}]}}]}}"#
        );
        client::send(daemon.address(), "POST /json", &[], &body).status
    };
    for expected in [200, 200, 200, 200, 200, 429] {
        assert_eq!(send("POST", "ann"), expected);
    }
    assert_eq!(send("POST", "bob"), 200, "each user has a counter");
    // 6 of 1,000 are charged: a denied request charges nothing.
    for _ in 6..1_000 {
        assert_eq!(send("GET", "ann"), 200);
    }
    assert_eq!(send("GET", "ann"), 429);
}
