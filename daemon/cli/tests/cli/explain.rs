//! `tollgate explain`.

use serde_json::{Value, json};
use tollgate_testkit::Folder;

use crate::process::run;

const CONFIG: &str = r#"
policies:
  api:
    limits: [10/s]
    overrides: { "header.x-api-key=vip": [100/s] }
    overrides_file: more.csv
    tiers: { pro: [50/s] }
    deny: ["header.x-api-key=bot-*"]
  address: { limits: [5/s] }
rules:
  - match: { path: "/api/**", method: [GET, POST] }
    checks:
      - { policy: api, key: "{header.x-api-key|ip}", tier: "{header.x-plan}" }
      - { policy: address, key: "{ip}" }
  - match: { path: "/user", host: example.com }
    policy: api
    key: "user:{query.user}"
"#;

#[test]
fn rule_keys_and_limits_of_a_request_are_shown() {
    let folder = Folder::create();
    folder.write("more.csv", "key,limits\n10.0.0.0/8,unlimited\n");
    let file = folder.write("tollgate.yaml", CONFIG);
    let explain = |arguments: &str| {
        let arguments = arguments.split_whitespace().map(|argument| argument.replace('_', " "));
        let config = ["explain".to_owned(), "--config".to_owned(), file.display().to_string()];
        run(config.into_iter().chain(arguments))
    };
    let address = "  address 203.0.113.7: 5/s, of the policy\n";
    for (arguments, first, second) in [
        (
            "/api/x -H X-Api-Key:_vip -H x-plan:_pro",
            "  api header.x-api-key=vip: 100/s, of the key's override\n",
            address,
        ),
        (
            "http://example.com/api/x?q=1 -H X-Api-Key:_other -H x-plan:_pro",
            "  api header.x-api-key=other: 50/s, of the tier \"pro\"\n",
            address,
        ),
        (
            "/api/x -X POST -H x-plan:_gold",
            "  api ip=203.0.113.7: 10/s, of the policy, which has no tier \"gold\"\n",
            address,
        ),
        (
            "/api/x -H x-api-key:_bot-7",
            "  api header.x-api-key=bot-7: always denied, of the policy\n",
            address,
        ),
    ] {
        let arguments = format!("{arguments} --address 203.0.113.7");
        let expected = format!("rules[0]  checked\n{first}{second}");
        assert_eq!(explain(&arguments), (0, expected, String::new()), "{arguments}");
    }
    let (code, output, _) = explain("/api/x --address 10.1.2.3 -o json");
    let expected = json!({
        "rules": [0],
        "outcome": "checked",
        "checks": [
            {
                "policy": "api", "key": "ip=10.1.2.3", "limits": "always admitted",
                "source": "of the key's override",
            },
            { "policy": "address", "key": "10.1.2.3", "limits": "5/s", "source": "of the policy" },
        ],
    });
    assert_eq!((code, serde_json::from_str::<Value>(&output).unwrap()), (0, expected));
    for (arguments, expected) in [
        ("/other -H host:_a", "admitted: no rule matches\n"),
        ("http://example.com/user", "rules[1]  denied: the request has no query.user\n"),
    ] {
        assert_eq!(explain(arguments), (0, expected.to_owned(), String::new()), "{arguments}");
    }
    let without_rules = folder.write("other.yaml", "policies: { api: { limits: [10/s] } }\n");
    let (code, output, _) =
        run(["explain", "/api/x", "--config", &without_rules.display().to_string()]);
    let expected = "admitted: the configuration has no rules for forward auth\n";
    assert_eq!((code, &*output), (0, expected));
    for (arguments, message) in [
        ("/user", "error: the request has no host; write a URL such as http://HOST/PATH"),
        ("/api/x", "error: the rule needs the client's address; add --address, such as"),
        ("/api/x -H x", "error: \"x\" is no header; write NAME: VALUE"),
        ("no_url", "is neither a path nor a URL"),
    ] {
        let (code, output, error) = explain(arguments);
        assert_eq!((code, &*output), (2, ""), "{arguments}");
        assert!(error.contains(message), "{arguments}: {error}");
    }
}
