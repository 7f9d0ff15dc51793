//! The example of `docs/envoy-ratelimit-config.md`.

use super::*;

const PAGE: &str = include_str!("../../../../docs/envoy-ratelimit-config.md");

/// The row of the page for a request.
fn row(domains: &Domains, request: &str) -> [String; 3] {
    match domains.find("shop", &entries(request)) {
        Lookup::Rule(rule) => {
            let limits = rule.rule.policy().map(|policy| format!("`{policy}`"));
            let limits = limits.unwrap_or_else(|| "nothing".to_owned());
            [limits, format!("`{}`", rule.key), format!("`{}`", rule.stat)]
        }
        _ => ["no rule".to_owned(), String::new(), String::new()],
    }
}

#[test]
fn page_matches_the_behaviour_of_its_example() {
    let (_, rest) = PAGE.split_once("```yaml\n").unwrap();
    let (yaml, rest) = rest.split_once("```\n").unwrap();
    let (_, rest) = rest.split_once("|---|---|---|---|\n").unwrap();
    let rows = rest.lines().take_while(|line| line.starts_with('|')).collect::<Vec<_>>();
    let domains = read(yaml);
    for line in &rows {
        let cells = line.split('|').map(str::trim).collect::<Vec<_>>();
        let [_, request, expected @ .., _] = &*cells else { panic!("{line}") };
        assert_eq!(row(&domains, request.trim_matches('`')), *expected, "{line}");
    }
    assert_eq!(rows.len(), 5);
}

#[test]
fn page_shows_the_actual_error() {
    let (yaml, _) = PAGE.split_once("```yaml\n").unwrap().1.split_once("```\n").unwrap();
    let yaml = yaml.replace("[10/s burst 20, 1000/h sliding]", "10/month");
    let options = ReadOptions::default();
    let error = Domains::from_yaml(&[Source::new("limits.yaml", yaml)], &options).unwrap_err();
    let shown = format!("limits.yaml:{}: {}", error.line.unwrap(), error.message);
    assert!(PAGE.contains(&shown), "{shown}");
}
