//! Which rule applies to which request.

use tollgate::{Overrides, Tiers};

use super::*;

/// Rules from lines such as `/api/** GET example.com x-plan:pro -> api {ip}; …`, where `-` matches
/// anything.
fn rules(lines: &[&str], on_no_rule: OnNoRule) -> Rules {
    let rules = lines.iter().map(|line| {
        let (matches, checks) = line.split_once(" -> ").unwrap();
        let words: Vec<_> = matches.split(' ').collect();
        let [paths, methods, hosts, tests] = words[..] else { panic!("{line}") };
        Rule {
            matches: Match {
                paths: list(paths, PathPattern::parse),
                methods: list(methods, MethodName::parse),
                hosts: list(hosts, HostPattern::parse),
                headers: list(tests, |text| {
                    let (name, value) = text.split_once(':').unwrap();
                    HeaderMatcher::new(name, value)
                }),
            },
            checks: checks.split("; ").map(check).collect(),
        }
    });
    Rules { rules: rules.collect(), on_no_rule, ..Rules::default() }
}

/// The elements of a list separated by commas.
fn list<T>(text: &str, parse: fn(&str) -> Result<T, String>) -> Vec<T> {
    text.split(',').filter(|part| *part != "-").map(|part| parse(part).unwrap()).collect()
}

/// `POLICY KEY [skip|deny|error]`.
fn check(text: &str) -> RuleCheck {
    let mut words = text.split(' ');
    let policy = words.next().unwrap();
    let key = Template::parse(words.next().unwrap()).unwrap();
    let on_missing = words.next().map(|word| OnMissing::parse(word).unwrap()).unwrap_or_default();
    RuleCheck { on_missing, ..RuleCheck::new(policy, key) }
}

/// The outcome as text.
fn outcome(rules: &Rules, facts: &Facts<'_>) -> String {
    match rules.evaluate(facts, 64) {
        Ok(RuleOutcome::Checks(checks)) => {
            let text = |check: &MatchedCheck<'_>| {
                format!("{} {}", check.policy, String::from_utf8_lossy(&check.key))
            };
            checks.iter().map(text).collect::<Vec<_>>().join("; ")
        }
        Ok(RuleOutcome::Deny(why)) => format!("denied: {why}"),
        Ok(RuleOutcome::NoRule(OnNoRule::Pass)) => "pass".to_owned(),
        Ok(RuleOutcome::NoRule(OnNoRule::Deny)) => "deny".to_owned(),
        Err(why) => format!("error: {why}"),
    }
}

#[test]
fn first_matching_rule_applies() {
    let rules = rules(
        &[
            "/login POST - - -> login {ip}",
            "/api/** - - x-plan:pro -> pro {header.x-api-key}",
            "/api/**,/v2/** GET - - -> api {header.x-api-key} skip; per-ip {ip}",
            "/deny - - - -> api {header.x-api-key} deny; per-ip {ip}",
            "/skip - - - -> api {header.x-api-key} skip",
            "/key - - - -> api {header.x-api-key}",
            "/error - - - -> api {header.x-api-key} error",
            "- - *.example.org - -> org {host}",
        ],
        OnNoRule::Pass,
    );
    for (method, target, host, lines, expected) in [
        ("POST", "/login", Ok("a"), &[][..], "login 203.0.113.7"),
        ("GET", "/login", Ok("a"), &[], "pass"),
        ("GET", "/api/x", Ok("a"), &["x-plan: pro", "x-api-key: k"], "pro k"),
        ("GET", "/api/x", Ok("a"), &["x-api-key: k"], "api k; per-ip 203.0.113.7"),
        ("HEAD", "/v2", Ok("a"), &["x-api-key: k"], "api k; per-ip 203.0.113.7"),
        ("GET", "/api/x", Ok("a"), &[], "per-ip 203.0.113.7"),
        ("PUT", "/api/x", Ok("a"), &[], "pass"),
        ("GET", "/deny", Ok("a"), &[], "denied: the request has no header.x-api-key"),
        ("GET", "/deny", Ok("a"), &["x-api-key: k"], "api k; per-ip 203.0.113.7"),
        ("GET", "/skip", Ok("a"), &[], ""),
        // By default, a request without a value for the key is denied.
        ("GET", "/key", Ok("a"), &[], "denied: the request has no header.x-api-key"),
        ("GET", "/error", Ok("a"), &[], "error: the request has no header.x-api-key"),
        (
            "GET",
            "/skip",
            Ok("a"),
            &["x-api-key: 1", "x-api-key: 2"],
            "error: the request has several values for header.x-api-key; send one",
        ),
        ("GET", "/x", Ok("A.Example.org:80"), &[], "org a.example.org"),
        // Attributes that no rule reads may be unknown.
        ("POST", "/login", Err("no host"), &[], "login 203.0.113.7"),
        ("GET", "/x", Err("no host"), &[], "error: no host"),
    ] {
        let headers = headers(lines);
        let mut facts = facts(target, &headers);
        (facts.method, facts.host) = (method, host);
        assert_eq!(outcome(&rules, &facts), expected, "{method} {target} {host:?} {lines:?}");
    }
}

#[test]
fn unknown_address_is_an_error_only_for_keys_that_use_it() {
    let rules = rules(
        &["/ip - - - -> a {ip} skip", "/or - - - -> a {header.k|ip}", "/no - - - -> a all"],
        OnNoRule::Pass,
    );
    for (target, lines, expected) in [
        ("/no", &[][..], "a all"),
        ("/or", &["k: v"], "a header.k=v"),
        ("/or", &[], "error: the client's address is unknown here"),
        ("/ip", &[], "error: the client's address is unknown here"),
    ] {
        let headers = headers(lines);
        let mut facts = facts(target, &headers);
        facts.client = Client::Unknown;
        assert_eq!(outcome(&rules, &facts), expected, "{target} {lines:?}");
    }
}

/// The rules for all readings apply. Other tests show which readings a path has.
#[test]
fn spellings_evade_no_rule() {
    let lines = [
        "/public/** - - - -> public {path}",
        "/login - - - -> login {ip}",
        "/login/** - - - -> below {ip}",
        "/items/* - - - -> items {path.2}",
        "/items/*/raw - - - -> raw {path.2}",
        "/key/** - - - -> key {header.x-api-key} error",
    ];
    const LOGIN: &str = "login 203.0.113.7";
    for (target, passing, denying) in [
        ("/login", &[LOGIN][..], ""),
        ("/login/", &[LOGIN], ""),
        ("/login%2F", &[LOGIN], "deny"),
        ("/login;x=1", &[LOGIN], "deny"),
        ("/x%2F..%2Flogin", &[LOGIN], "deny"),
        (
            "/public/..%2Flogin",
            &[LOGIN, "public /public/..%2Flogin", "public /public/../login"],
            "",
        ),
        ("/public/..;/login", &["public /public/..;/login", LOGIN, "public /public/../login"], ""),
        (
            "/public/\\..\\..\\login",
            &["public /public/\\..\\..\\login", LOGIN, "public /public/../../login"],
            "",
        ),
        ("/login/../public", &["public /public", "below 203.0.113.7"], ""),
        ("/public/a%2Fb", &["public /public/a/b", "public /public/a%2Fb"], ""),
        ("/items/a%2fb", &["items a%2Fb"], "deny"),
        ("/items/a%2Fraw", &["raw a", "items a%2Fraw"], ""),
        ("/items/a;1", &["items a;1", "items a"], ""),
        ("/other%2Fx", &["pass"], "deny"),
        // An error may let a request pass, and so may not replace a decision.
        ("/key", &["error: the request has no header.x-api-key"], ""),
        ("/key/..;/login", &["denied: the request has no header.x-api-key"], ""),
    ] {
        let passing = passing.join("; ");
        let denying = if denying.is_empty() { &*passing } else { denying };
        let headers = headers(&[]);
        let facts = facts(target, &headers);
        assert_eq!(outcome(&rules(&lines, OnNoRule::Pass), &facts), passing, "{target}");
        assert_eq!(outcome(&rules(&lines, OnNoRule::Deny), &facts), denying, "{target}");
    }
}

#[test]
fn ambiguous_paths_can_be_denied() {
    let ambiguous_paths = AmbiguousPaths::Deny;
    let rules = Rules { ambiguous_paths, ..rules(&["- - - - -> all {path}"], OnNoRule::Pass) };
    let denied = "denied: servers may read the path in different ways; send it normalized";
    for (target, expected) in [
        ("/a%20b/c.html?x=;", "all /a b/c.html"),
        ("/a//b", "all /a/b"),
        ("/a;b", denied),
        ("/a%2Fb", denied),
        ("/a/../b", denied),
        ("//a", denied),
    ] {
        let headers = headers(&[]);
        assert_eq!(outcome(&rules, &facts(target, &headers)), expected, "{target}");
    }
}

#[test]
fn paths_with_too_many_readings_or_checks_are_denied() {
    let key = ["all {path}", "all {ip}:{path}", "all {method}:{path}"].join("; ");
    let rules = rules(&[&format!("- - - - -> {key}")], OnNoRule::Pass);
    let denied = "denied: servers may read the path in different ways; send it normalized";
    for target in ["//a%252fb;c\\..#d./", "/a;b%2F..\\c/d%20/e"] {
        let headers = headers(&[]);
        assert_eq!(outcome(&rules, &facts(target, &headers)), denied, "{target}");
    }
}

#[test]
fn case_of_paths_can_be_ignored() {
    let path_case = PathCase::Insensitive;
    let lines = ["/Login/*.PHP - - - -> login {path}", "/ü/** - - - -> other {path.1}"];
    let rules = Rules { path_case, ..rules(&lines, OnNoRule::Pass) };
    for (target, expected) in [
        ("/login/a.php", "login /login/a.php"),
        ("/LOGIN/A.PHP", "login /login/a.php"),
        ("/%4cogin/A.pHP", "login /login/a.php"),
        ("/%C3%9C/x", "other ü"),
        ("/%DC/x", "pass"),
    ] {
        let headers = headers(&[]);
        assert_eq!(outcome(&rules, &facts(target, &headers)), expected, "{target}");
    }
}

#[test]
fn tier_without_a_value_is_the_default_tier() {
    let tier = Some(Template::parse("{header.x-plan}").unwrap());
    let check = RuleCheck { tier, cost: Cost::new(3).unwrap(), ..check("api {ip}") };
    let rules =
        Rules { rules: vec![Rule { checks: vec![check], ..Rule::default() }], ..Rules::default() };
    for (lines, expected) in [(&[][..], None), (&["x-plan: pro"], Some(b"pro".to_vec()))] {
        let headers = headers(lines);
        let Ok(RuleOutcome::Checks(checks)) = rules.evaluate(&facts("/", &headers), 64) else {
            panic!()
        };
        assert_eq!((&checks[0].tier, checks[0].cost), (&expected, Cost::new(3).unwrap()));
    }
    let headers = headers(&["x-plan: pro", "x-plan: max"]);
    let several = "error: the request has several values for header.x-plan; send one";
    assert_eq!(outcome(&rules, &facts("/", &headers)), several);
}

/// A client chooses the values, so that none of them may change the decision.
#[test]
fn a_note_neither_fails_a_check_nor_adds_one() {
    let note = Some(Template::parse("{method}:{path.2}:{header.x-user}").unwrap());
    let check = RuleCheck { note, ..check("api {ip}") };
    let rules =
        Rules { rules: vec![Rule { checks: vec![check], ..Rule::default() }], ..Rules::default() };
    let long = format!("x-user: {}", "7".repeat(300));
    for (path, lines, expected) in [
        ("/a/b", &["x-user: 42"][..], Some("GET:b:42".to_owned())),
        ("/a/b", &[&long], Some(format!("GET:b:{}", "7".repeat(300)))),
        ("/a/b", &[], None),
        ("/a/b", &["x-user: 42", "x-user: 43"], None),
        // Servers read this path in two ways, which differ in the second segment; one is noted.
        ("/a%2Fx/b", &["x-user: 42"], Some("GET:x:42".to_owned())),
    ] {
        let headers = headers(lines);
        let Ok(RuleOutcome::Checks(checks)) = rules.evaluate(&facts(path, &headers), 64) else {
            panic!("{path} {lines:?}")
        };
        assert_eq!(checks.len(), 1, "{path}");
        assert_eq!(checks[0].note, expected.map(String::into_bytes), "{path} {lines:?}");
    }
}

#[test]
fn rules_with_unusable_checks_are_rejected() {
    const CONCURRENT: &str = "2 concurrent lease 60s";
    let mut policies = Policies::new();
    for (name, limits) in [("api", "1/s"), ("jobs", CONCURRENT), ("some", "1/s"), ("tiers", "1/s")]
    {
        policies.define(name, limits).unwrap();
    }
    // Policies with a concurrent limit only in an override or in a tier.
    let mut overrides = Overrides::builder();
    overrides.add("vip", CONCURRENT).unwrap();
    policies.set_additional_overrides("some", &overrides.build()).unwrap();
    let mut tiers = Tiers::new();
    tiers.add("pro", CONCURRENT).unwrap();
    policies.set_tiers("tiers", &tiers).unwrap();
    let concurrent = |name: &str| {
        format!(
            "policy {name:?} has a concurrent limit, and a rule cannot release a lease; use a \
             policy without one"
        )
    };
    let unknown = "there is no policy \"apj\"; did you mean \"api\"?";
    for (line, expected) in [
        ("api {ip}; api {host}", None),
        (&*["api {ip}"; 17].join("; "), Some((None, "expected 1 to 16 checks, found 17"))),
        ("api {ip}; apj {ip}", Some((Some(1), unknown))),
        ("some {ip}", Some((Some(0), &*concurrent("some")))),
        ("tiers {ip}", Some((Some(0), &*concurrent("tiers")))),
        ("jobs {ip}", Some((Some(0), &*concurrent("jobs")))),
    ] {
        let rules = rules(&["- - - - -> api all", &format!("- - - - -> {line}")], OnNoRule::Pass);
        let expected = expected.map(|(check, message): (Option<usize>, &str)| {
            let field = if check.is_some() { "policy" } else { "checks" };
            RuleError { rule: 1, check, field, message: message.into() }
        });
        assert_eq!(rules.check(&policies).err(), expected, "{line}");
    }
}

/// The value of a placeholder is known only at run time.
#[test]
fn literal_tiers_that_the_policy_lacks_are_rejected() {
    let mut policies = Policies::new();
    for name in ["api", "bare"] {
        policies.define(name, "1/s").unwrap();
    }
    let mut tiers = Tiers::new();
    tiers.add("pro", "2/s").unwrap();
    policies.set_tiers("api", &tiers).unwrap();
    let no_tiers =
        "policy \"bare\" has no tier \"pro\"; it has no tiers: omit the tier or define it";
    for (policy, tier, expected) in [
        ("api", "pro", None),
        ("api", "{header.x-plan}", None),
        ("bare", "{header.x-plan}", None),
        ("api", "gold", Some("policy \"api\" has no tier \"gold\"; it has pro")),
        ("bare", "pro", Some(no_tiers)),
    ] {
        let check = RuleCheck::new(policy, Template::parse("{ip}").unwrap());
        let check = RuleCheck { tier: Some(Template::parse(tier).unwrap()), ..check };
        let rule = Rule { checks: vec![check], ..Rule::default() };
        let rules = Rules { rules: vec![rule], ..Rules::default() };
        let expected = expected.map(|message| RuleError {
            rule: 0,
            check: Some(0),
            field: "tier",
            message: message.to_owned(),
        });
        assert_eq!(rules.check(&policies).err(), expected, "{policy} {tier}");
    }
}

#[test]
fn uses_jwt_reports_templates_with_claims() {
    for (key, uses) in [("{ip}", false), ("{header.a|jwt.sub}", true)] {
        let rules = rules(&[&format!("- - - - -> api {key}")], OnNoRule::Pass);
        assert_eq!(rules.uses_jwt(), uses, "{key}");
    }
}
