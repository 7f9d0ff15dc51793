//! The configuration of `docs/getting-started.md` behind nginx.

use tollgate_testkit::GatewayKind;

use crate::init::init;
use crate::process::{read_repository, run};
use crate::setup::{Options, Setup};

/// The sample: policies with overrides and tiers, and a rule. The plan comes from a header in place
/// of a token, and the limits recover too slowly to matter.
fn sample() -> String {
    let page = read_repository("docs/getting-started.md");
    let (_, rest) = page.split_once("```yaml\n").unwrap();
    let (yaml, _) = rest.split_once("```").unwrap();
    let mut text = String::new();
    for line in
        yaml.lines().filter(|line| !line.starts_with("jwt:") && !line.starts_with("tokens:"))
    {
        text.push_str(line);
        text.push('\n');
    }
    for (from, to) in [
        (r#"["10/s burst 20", "1000/h sliding by 1m"]"#, "[2/d log]"),
        (r#""header.x-api-key=vip": ["100/s"]"#, r#""header.x-api-key=vip": [4/d log]"#),
        (r#"{ pro: ["100/s"] }"#, "{ pro: [3/d log] }"),
        ("{jwt.plan}", "{header.x-plan}"),
    ] {
        assert!(text.contains(from), "{from} is not in {text}");
        text = text.replace(from, to);
    }
    text + "operators: loopback\n"
}

#[test]
fn operations_on_the_sample_take_effect_on_the_next_request() {
    if !GatewayKind::Nginx.is_installed() {
        return;
    }
    let (_, recipe, _) = init(&["nginx", "--file", "tollgate.yaml"]);
    let policies = recipe.split_once("\npolicies:").unwrap().1.replace("5/min log", "5/h log");
    let sample = sample();
    let forwarded = "proxy_set_header X-Api-Key $http_x_api_key;";
    let setup = Setup::with(
        GatewayKind::Nginx,
        Options {
            edits: &[
                ("trusted_proxies: [127.0.0.1, \"::1\"]\n", ""),
                (&format!("policies:{policies}"), &sample),
            ],
            gateway_edits: &[(
                &format!("# {forwarded}"),
                &format!("{forwarded} proxy_set_header X-Plan $http_x_plan;"),
            )],
            ..Options::default()
        },
    );
    let pass_until = |headers: &[&str], count: usize| {
        for at in 0..=count {
            let status = setup.send(9, "GET /api/x", headers).status;
            assert_eq!(status, if at < count { 200 } else { 429 }, "{headers:?} {at}");
        }
    };
    pass_until(&["X-Api-Key: vip"], 4);
    pass_until(&["X-Api-Key: other"], 2);
    pass_until(&["X-Api-Key: third", "X-Plan: pro"], 3);
    pass_until(&["X-Api-Key: fourth", "X-Plan: unknown"], 2);
    // An override takes precedence over a tier.
    assert_eq!(setup.send(9, "GET /api/x", &["X-Api-Key: vip", "X-Plan: pro"]).status, 429);
    // A key that imitates an address has a counter of its own.
    pass_until(&["X-Api-Key: ip=127.0.0.9"], 2);
    pass_until(&[], 2);

    for (operation, key, header, status) in [
        ("reset", "header.x-api-key=vip", &["X-Api-Key: vip"][..], 200),
        ("block", "header.x-api-key=vip", &["X-Api-Key: vip"], 429),
        ("unblock", "header.x-api-key=vip", &["X-Api-Key: vip"], 200),
        ("reset", "ip=127.0.0.9", &[], 200),
        ("block", "ip=127.0.0.9", &[], 429),
        ("unblock", "ip=127.0.0.9", &[], 200),
    ] {
        let (code, output, error) = run([operation, "api", key, "--url", setup.daemon.url()]);
        assert_eq!((code, &*error), (0, ""), "{operation} {key}: {output}");
        let response = setup.send(9, "GET /api/x", header);
        assert_eq!(response.status, status, "{operation} {key}: {response:?}");
    }
    // Without its source, the key is another one, and the answer names the one that was meant.
    let (_, _, error) = run(["block", "api", "vip", "--url", setup.daemon.url()]);
    assert!(error.contains("did you mean \"header.x-api-key=vip\"?"), "{error}");
    assert_eq!(setup.send(9, "GET /api/x", &["X-Api-Key: vip"]).status, 200);
}
