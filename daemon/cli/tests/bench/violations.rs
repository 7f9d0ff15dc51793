//! Limiters that admit too much are detected.

use crate::mock::{Action, Mock};
use crate::tool::{bench, json};
use crate::verification::LIMITS;

#[test]
fn a_server_that_allows_everything_violates_every_kind_of_limit() {
    let mock = Mock::start(|_| Action::Allow);
    for limit in LIMITS {
        let words = format!("{} --limit \"{limit}\" --verify --keys 1 -n 400", mock.url());
        let (code, value) = json(&words);
        assert_eq!(code, 1, "{limit}: {value}");
        let worst = &value["verify"]["worst"][0];
        assert!(worst["admitted"].as_u64() > worst["bound"].as_u64(), "{limit}: {value}");
        assert!(worst["key"].as_str().unwrap().starts_with("bench-"), "{value}");
    }
}

#[test]
fn one_admission_above_the_limit_is_reported() {
    let words = "memory --limit \"11/d log\" --keys 1 -n 20 --verify --key-prefix k";
    let (code, table, _) = bench(&format!("{words} --against \"10/d log\""));
    assert_eq!(code, 1, "{table}");
    assert!(
        table.contains("VIOLATION in 1 case: more was admitted than 10/d log allows"),
        "{table}"
    );
    assert!(table.contains("k0: 11 within") && table.contains("at most 10 by 10/d log"), "{table}");
    let (code, table, _) = bench(&format!("{words} --against \"11/d log\""));
    assert_eq!(code, 0, "{table}");
}
