//! Reports with arbitrary numbers.

use proptest::prelude::*;
use tollgate::{Micros, Timestamp};
use tollgate_replay::page;
use tollgate_replay::report::{Amount, Outcome, Peaks, Report, RequestOutcome, Timeline};

use crate::drawing::check;
use crate::read;

/// Numbers of every size, consistent or not.
fn any_report() -> impl Strategy<Value = Report> {
    let number = prop_oneof![0..50_u64, 0..1_000_000_u64, any::<u64>()];
    let numbers = || prop::collection::vec(number.clone(), 0..12);
    let text = ".{0,300}";
    (numbers(), numbers(), numbers(), prop::collection::vec((text, any::<bool>()), 0..4)).prop_map(
        |(some, offered, admitted, outcomes)| {
            let at = |index: usize| some.get(index).copied().unwrap_or_default();
            let time = |index: usize| Timestamp::from_micros(at(index));
            let amount = |index: usize| Amount { requests: at(index), cost: at(index + 1) };
            let outcome = |(name, has_decisions): (String, bool)| Outcome {
                limits: ["5/s", "100/min fixed offset 1s", "9/w fixed", "3 concurrent lease 9s"]
                    .map(|x| x.parse().unwrap())
                    .to_vec(),
                admitted: amount(0),
                denied: amount(1),
                admitted_over_time: admitted.clone(),
                decisions: (0..some.len() * usize::from(has_decisions))
                    .map(|n| RequestOutcome { time: time(n), is_admitted: n % 2 == 0, cost: at(n) })
                    .collect(),
                name,
                ..Outcome::default()
            };
            Report {
                offered: amount(2),
                keys: at(3),
                timeline: Timeline { start: time(4), width: Micros::new(at(5)), costs: offered },
                outcomes: outcomes.into_iter().map(outcome).collect(),
                peaks: vec![Peaks {
                    window: Micros::new(at(6)),
                    keys_by_cost: some.iter().copied().zip(some.iter().copied().skip(1)).collect(),
                    highest: None,
                }],
                ..Report::default()
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn any_report_can_be_drawn(report in any_report()) {
        check("random", &report);
        read(&page(&report)).unwrap();
        let json = serde_json::to_string(&report).unwrap();
        let value: serde_json::Value = serde_json::from_str(&json).unwrap();
        let costs = serde_json::to_value(&report.timeline.costs).unwrap();
        prop_assert_eq!(&value["timeline"]["costs"], &costs);
        let _ = report.table(80);
    }
}
