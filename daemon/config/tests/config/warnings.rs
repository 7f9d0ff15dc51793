//! Warnings about valid settings.

use tollgate_config::Layers;
use tollgate_testkit::Folder;

/// The warnings about a file, without those about listeners and operators.
fn warnings(yaml: &str) -> Vec<String> {
    let loaded = Layers::new().named_yaml("t.yaml", yaml).read().unwrap();
    loaded.warnings().iter().map(ToString::to_string).collect()
}

const FORMS: &str = r#"keys of rules[0] look like "header.x-api-key=…" or "ip=…""#;

#[test]
fn overrides_that_match_no_key_of_a_rule_cause_warnings() {
    let yaml = r#"
policies:
  api:
    limits: [10/s]
    overrides:
      vip: [100/s]
      header.x-api-key=vip: [100/s]
      "bot-*": [1/s]
      "header.x-api-key=bot-*": [1/s]
      203.0.113.7: [2/s]
      10.0.0.0/8: unlimited
  unused:
    limits: [10/s]
    overrides: { vip: [100/s] }
rules:
  - { policy: api, key: "{header.x-api-key|ip}" }
"#;
    let expected = [
        ("6:7: policies.api.overrides.vip", "header.x-api-key=vip"),
        ("8:7: policies.api.overrides.bot-*", "header.x-api-key=bot-*"),
        ("10:7: policies.api.overrides.203.0.113.7", "ip=203.0.113.7"),
    ];
    let expected = expected.map(|(place, key)| {
        format!(
            "t.yaml:{place}: no request has this key: {FORMS}; write {key:?}, unless other clients \
             send it"
        )
    });
    assert_eq!(warnings(yaml), expected);
}

#[test]
fn list_entries_that_match_no_key_of_a_rule_cause_warnings() {
    let yaml = r#"
policies: { api: { limits: [10/s], allow: ["ip=10.0.0.1", "health"], deny: ["header.*", "bot-*"] } }
rules: [{ policy: api, key: "{header.x-api-key|ip}" }]
"#;
    let warnings = warnings(yaml);
    let [allow, deny] = &*warnings else { panic!("{warnings:?}") };
    assert!(allow.starts_with("t.yaml:2:59: policies.api.allow[1]: no request has this key: "));
    assert!(deny.starts_with("t.yaml:2:89: policies.api.deny[1]: no request has this key: "));
}

#[test]
fn key_of_an_address_is_the_network_of_ipv6_prefix() {
    let yaml = |prefix: u8| {
        format!(
            "policies: {{ api: {{ limits: [10/s], overrides: {{ \"2001:db8::1\": [1/s] }} }} }}\n\
             rules: [{{ policy: api, key: \"{{ip}}\" }}]\nipv6_prefix: {prefix}\n"
        )
    };
    assert_eq!(
        warnings(&yaml(64)),
        ["t.yaml:1:49: policies.api.overrides.2001:db8::1: no request has this key: keys of \
          rules[0] look like \"{ip}\"; write it in that form, unless other clients send it"]
    );
    assert_eq!(warnings(&yaml(128)), [""; 0]);
}

#[test]
fn rows_of_a_file_that_match_no_key_of_a_rule_are_counted() {
    let folder = Folder::create();
    folder.write("vips.csv", "key,limits\nip=10.0.0.1,1/s\nvip,1/s\n10.0.0.0/8,1/s\n");
    let yaml = "policies: { api: { limits: [10/s], overrides_file: vips.csv } }\n\
                rules: [{ policy: api, key: \"{header.x-api-key|ip}\" }]\n";
    let file = folder.write("t.yaml", yaml);
    let loaded = Layers::new().file(&file).read().unwrap();
    let warnings = loaded.warnings();
    let [warning] = &*warnings else { panic!("{warnings:?}") };
    assert_eq!(warning.field(), Some("policies.api.overrides_file"));
    assert_eq!((warning.line(), warning.column()), (Some(1), Some(52)));
    assert_eq!(
        warning.message(),
        format!(
            "1 of 3 overrides match no key of a rule, such as \"vip\": no request has this key: \
             {FORMS}; write \"header.x-api-key=vip\", unless other clients send it"
        )
    );
}

#[test]
fn many_entries_are_counted() {
    let rows = (0..12).map(|n| format!("k{n}: [1/s]")).collect::<Vec<_>>().join(", ");
    let yaml = format!(
        "policies: {{ api: {{ limits: [10/s], overrides: {{ {rows} }} }} }}\n\
         rules: [{{ policy: api, key: \"{{ip}}\" }}]\n"
    );
    let warnings = warnings(&yaml);
    assert_eq!(warnings.len(), 9, "{warnings:?}");
    let last = "t.yaml:1:47: policies.api.overrides: 4 more entries match no key of a rule";
    assert_eq!(warnings[8], last);
}

#[test]
fn tiers_that_no_rule_selects_cause_warnings() {
    let yaml = |tier: &str| {
        format!(
            "policies: {{ api: {{ limits: [1/s], tiers: {{ pro: [2/s], gold: [3/s] }} }} }}\n\
             rules: [{{ policy: api, key: \"{{ip}}\"{tier} }}]\n"
        )
    };
    let warning = |place: &str| {
        format!(
            "t.yaml:1:{place}: no rule selects this tier; add tier to the check of rules[0], or \
             remove this tier, unless other clients send it"
        )
    };
    let (pro, gold) =
        (warning("44: policies.api.tiers.pro"), warning("56: policies.api.tiers.gold"));
    assert_eq!(warnings(&yaml("")), [pro.clone(), gold.clone()]);
    assert_eq!(warnings(&yaml(", tier: gold")), [&*pro]);
    assert_eq!(warnings(&yaml(", tier: \"{header.x-plan}\"")), [""; 0]);
    // The value of an alternative has its source before it.
    assert_eq!(warnings(&yaml(", tier: \"{header.x-plan|query.plan}\"")), [pro, gold]);
}

#[test]
fn policies_that_are_leased_in_vain_cause_warnings() {
    let policies = "policies: { api: { limits: [100/s], mode: leased }, hot: { limits: [9000/s], mode: leased } }";
    let redis = format!("store: {{ url: \"redis://h\" }}\n{policies}");
    let vain = "the limits admit 10 in the hold time of 0.1 s, and a process leases 20 or more; the store \
                decides each check, except in bursts; use exact";
    assert_eq!(warnings(&redis), [format!("t.yaml:2:43: policies.api.mode: {vain}")]);
    let memory = warnings(policies);
    assert_eq!(memory.len(), 2, "{memory:?}");
    assert!(
        memory[1].ends_with("leased only lowers the limits, to 9000/s burst 8100"),
        "{memory:?}"
    );
}
