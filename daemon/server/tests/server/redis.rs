//! The daemon on a real Redis or Valkey: several that share a limit, and what is said while the
//! store is away.

use std::time::Duration;

use tollgate_testkit::Server;

use crate::client::Answer;
use crate::daemon::Daemon;

/// A daemon on a server, with time enough for a busy machine.
async fn start(server: &Server, policies: &str) -> Daemon {
    start_within(server, "5s", policies).await
}

async fn start_within(server: &Server, deadline: &str, policies: &str) -> Daemon {
    let url = server.url();
    let yaml =
        format!("store: {{ url: \"{url}\", deadline: {deadline} }}\npolicies: {{ {policies} }}");
    Daemon::start_on_store(&yaml).await
}

async fn check(daemon: &Daemon, policy: &str) -> Answer {
    daemon.post("/v1/check", &format!(r#"{{"policy":"{policy}","key":"k"}}"#)).await
}

/// Asks until the answer is so.
async fn until(what: &str, mut ask: impl AsyncFnMut() -> Answer, is_so: fn(&Answer) -> bool) {
    for _ in 0..4_000 {
        if is_so(&ask().await) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    panic!("{what} does not come about");
}

fn is_degraded(answer: &Answer) -> bool {
    answer.body.contains(r#""degraded":true"#)
}

#[tokio::test]
async fn checks_are_decided_and_the_server_has_the_state() {
    let server = Server::start();
    let daemon = start(&server, "api: { limits: [2/h] }").await;
    let rows = [
        (200, r#""remaining":1,"retry_after":null"#),
        (200, r#""remaining":0,"retry_after":null"#),
        (429, r#""remaining":0,"retry_after":1"#),
    ];
    for (status, said) in rows {
        let answer = check(&daemon, "api").await;
        assert_eq!(answer.status, status, "{}", answer.body);
        assert!(answer.body.contains(said), "{}", answer.body);
        assert!(answer.body.contains(r#""source":"store","degraded":false"#), "{}", answer.body);
        assert_eq!(answer.header("retry-after").is_some(), status == 429);
    }
    for (verb, said) in [
        ("inspect", r#""capacity":2,"used":2,"remaining":0"#),
        ("reset", r#""remaining":2"#),
        ("block", r#""changed":true"#),
        ("peek", r#""reason":"blocked""#),
        ("unblock", r#""changed":true"#),
    ] {
        let answer = daemon.post(&format!("/v1/{verb}"), r#"{"policy":"api","key":"k"}"#).await;
        assert_eq!(answer.status, 200, "{verb}: {}", answer.body);
        assert!(answer.body.contains(said), "{verb}: {}", answer.body);
    }
    assert_eq!(server.keys("tollgate").len(), server.keys("").len());
    assert_eq!(server.keys_without_ttl(""), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_daemons_share_a_limit_exactly() {
    let server = Server::start();
    let policies = "api: { limits: [50/d, 30/d log, 100/d from-first fixed] }";
    let daemons = [start(&server, policies).await, start(&server, policies).await];
    let mut asking = tokio::task::JoinSet::new();
    for address in daemons.iter().cycle().take(8).map(|daemon| daemon.address) {
        asking.spawn(async move {
            let mut client = crate::client::Client::connect(address).await;
            let mut admitted = 0;
            for _ in 0..20 {
                let body = r#"{"policy":"api","key":"k"}"#;
                let answer = client.post("/v1/check", body).await.unwrap();
                assert!(!is_degraded(&answer), "{}", answer.body);
                admitted += u32::from(answer.status == 200);
            }
            admitted
        });
    }
    let admitted: u32 = asking.join_all().await.into_iter().sum();
    assert_eq!(admitted, 30);
}

const MIXED: &str = "closed: { limits: [10/h] }, open: { limits: [10/h], on_store_error: allow },
    shadow: { limits: [10/h], shadow: true }, listed: { limits: [10/h], deny: [k] }";

#[tokio::test]
async fn while_the_store_is_away_policies_say_what_that_means() {
    let server = Server::start();
    let daemon = start(&server, MIXED).await;
    assert_eq!(check(&daemon, "closed").await.status, 200);
    server.kill();
    until("the failure", async || check(&daemon, "open").await, is_degraded).await;
    for (policy, status, allowed) in
        [("closed", 503, false), ("open", 200, true), ("shadow", 200, true)]
    {
        let answer = check(&daemon, policy).await;
        assert_eq!(answer.status, status, "{}", answer.body);
        let granted = u32::from(allowed);
        for said in [
            format!(r#"{{"allowed":{allowed},"reason":"store","policy":"{policy}""#),
            format!(r#""granted":{granted},"source":"fallback","degraded":true"#),
            r#""limits":[]"#.to_owned(),
        ] {
            assert!(answer.body.contains(&said), "{said}: {}", answer.body);
        }
        assert_eq!(answer.header("content-type"), Some("application/json"));
    }
    assert_eq!(check(&daemon, "listed").await.status, 429, "a list needs no store");
    let asked = r#"{"policy":"closed","key":"k"}"#;
    assert_eq!(daemon.post("/v1/check?status=200", asked).await.status, 200);
    assert_eq!(daemon.post("/v1/peek", asked).await.status, 200);
    assert_eq!(daemon.post("/v1/take", asked).await.status, 503);
    let several = r#"{"checks":[{"policy":"open","key":"k"},{"policy":"closed","key":"k"}]}"#;
    let answer = daemon.post("/v1/check", several).await;
    assert_eq!(answer.status, 503);
    assert!(answer.body.starts_with(r#"{"allowed":false,"retry_after":null,"never":false"#));
    for verb in ["reset", "block", "unblock", "penalize", "refund", "inspect"] {
        let answer = daemon.post(&format!("/v1/{verb}"), asked).await;
        assert_eq!(answer.status, 503, "{verb}: {}", answer.body);
        assert_eq!(answer.header("content-type"), Some("application/problem+json"));
        assert!(answer.body.contains(r#""type":"/problems/store-unavailable""#), "{}", answer.body);
        assert!(
            answer.body.contains("check its address and that it is running"),
            "{}",
            answer.body
        );
    }
    // What cannot be decided is still told so.
    assert_eq!(
        daemon.post("/v1/take", r#"{"policy":"closed","key":"k","cost":0}"#).await.status,
        400
    );
    assert_eq!(daemon.connect().await.get("/readyz").await.unwrap().status, 200);
    server.restart();
    until("the store", async || check(&daemon, "closed").await, |x| !is_degraded(x)).await;
    assert_eq!(check(&daemon, "closed").await.status, 200);
}

#[tokio::test]
async fn a_store_that_is_away_at_the_start_is_waited_for_in_the_background() {
    let server = Server::start();
    server.kill();
    let daemon = start(&server, MIXED).await;
    assert_eq!(check(&daemon, "closed").await.status, 503);
    assert_eq!(check(&daemon, "open").await.status, 200);
    assert_eq!(daemon.connect().await.get("/readyz").await.unwrap().status, 200);
    server.restart();
    until("the store", async || check(&daemon, "closed").await, |x| !is_degraded(x)).await;
}

#[tokio::test]
async fn a_store_that_is_silent_is_answered_for_within_the_deadline() {
    let server = Server::start();
    let daemon = start_within(&server, "15ms", MIXED).await;
    server.pause();
    let started = tokio::time::Instant::now();
    assert_eq!(check(&daemon, "closed").await.status, 503);
    assert_eq!(check(&daemon, "open").await.status, 200);
    // Two deadlines, with room for a busy machine; less than twice what a call may take.
    assert!(started.elapsed() < Duration::from_millis(900), "{:?}", started.elapsed());
    server.resume();
    until("the store", async || check(&daemon, "closed").await, |x| !is_degraded(x)).await;
}

#[tokio::test]
async fn the_password_may_be_in_a_file_and_the_user_beside_the_url() {
    let server = Server::with(|config| config.password("sesame"));
    let file = server.folder().join("password");
    std::fs::write(&file, "sesame\n").unwrap();
    let yaml = format!(
        "store: {{ url: \"redis://{}\", deadline: 5s, password_file: {} }}
policies: {{ api: {{ limits: [1/h] }} }}",
        server.address(),
        file.display()
    );
    let daemon = Daemon::start_on_store(&yaml).await;
    let answer = check(&daemon, "api").await;
    assert_eq!((answer.status, is_degraded(&answer)), (200, false), "{}", answer.body);
    let missing = yaml.replace("password }", "nowhere }");
    let config = tollgate_server::Config::from_yaml(&missing).unwrap();
    let error = config.store.open("tollgate").await.unwrap_err().to_string();
    assert!(
        error.starts_with("store.password_file: ") && error.contains("cannot be read"),
        "{error}"
    );
}
