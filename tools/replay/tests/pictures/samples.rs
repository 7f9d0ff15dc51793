//! Reports of synthetic traffic, decided by the library.

use std::collections::BTreeMap;

use tollgate::{Cost, Key, ManualClock, MemoryLimiter, Micros, Policy, Timestamp};
use tollgate_replay::report::{
    Amount, Denial, InvalidLine, Outcome, Peaks, Report, RequestOutcome, Source, Suggestion,
    Timeline, WorstKey,
};

/// 2025-11-20 14:46:40 UTC.
pub(crate) const NOW: u64 = 1_763_650_000_000_000;
pub(crate) const SECOND: u64 = 1_000_000;

#[derive(Clone, Debug)]
pub(crate) struct SampleRequest {
    pub(crate) time: u64,
    pub(crate) key: Vec<u8>,
    pub(crate) cost: u64,
}

/// A fixed sequence of pseudo-random numbers.
#[derive(Clone, Debug)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % most
    }
}

/// One key with few requests, and ten times as many around the end of a minute.
pub(crate) fn edge_burst() -> Vec<SampleRequest> {
    let edge = (NOW / (60 * SECOND) + 1) * 60 * SECOND;
    let quiet = (0..30).map(|at| edge - 60 * SECOND + at * 4 * SECOND);
    let burst = (0..300).map(|at| edge - 6 * SECOND + at * SECOND / 25);
    requests_of_one_key(quiet.chain(burst))
}

fn requests_of_one_key(times: impl Iterator<Item = u64>) -> Vec<SampleRequest> {
    let mut all: Vec<_> =
        times.map(|time| SampleRequest { time, key: b"user:42".to_vec(), cost: 1 }).collect();
    all.sort_by_key(|request| request.time);
    all
}

/// An hour of several hundred keys with different rates and three waves.
pub(crate) fn waves() -> Vec<SampleRequest> {
    let mut random = Random(7);
    let mut all = Vec::new();
    for second in 0..3_600_u64 {
        let wave = match second {
            600..900 => 60,
            1_800..2_000 => 120,
            3_000..3_500 => 40,
            _ => 8,
        };
        for _ in 0..random.below(wave) + wave / 2 {
            let key = random.below(400) * random.below(400) / 400;
            let time = NOW + second * SECOND + random.below(SECOND);
            all.push(SampleRequest { time, key: format!("user:{key}").into_bytes(), cost: 1 });
        }
    }
    all.sort_by_key(|request| request.time);
    all
}

/// Two days of some keys that are busy by day and quiet by night, from noon.
pub(crate) fn two_days() -> Vec<SampleRequest> {
    let noon = NOW / (86_400 * SECOND) * 86_400 * SECOND + 43_200 * SECOND;
    let mut random = Random(11);
    let mut all = Vec::new();
    for minute in 0..2_880_u64 {
        let from_noon = (minute % 1_440).min(1_440 - minute % 1_440);
        for _ in 0..random.below(2 + (720 - from_noon) / 40) {
            let time = noon + minute * 60 * SECOND + random.below(60 * SECOND);
            let key = random.below(30) * random.below(30) / 30;
            all.push(SampleRequest { time, key: format!("10.0.0.{key}").into_bytes(), cost: 1 });
        }
    }
    all.sort_by_key(|request| request.time);
    all
}

/// The report of several candidates, in bins of equal width.
pub(crate) fn report(requests: &[SampleRequest], width: u64, policies: &[&str]) -> Report {
    let start = requests.first().map_or(0, |x| x.time / width * width);
    let bin = |time: u64| usize::try_from((time - start) / width).unwrap();
    let bins = requests.last().map_or(0, |x| bin(x.time) + 1);
    let mut timeline =
        Timeline { start: at(start), width: Micros::new(width), costs: vec![0; bins] };
    let mut offered = Amount::default();
    let mut keys: BTreeMap<&[u8], u64> = BTreeMap::new();
    for value in requests {
        timeline.costs[bin(value.time)] += value.cost;
        offered.requests += 1;
        offered.cost += value.cost;
        *keys.entry(&value.key).or_default() += 1;
    }
    let first_and_last = requests.first().zip(requests.last());
    Report {
        source: Source {
            command: Some(format!(
                "tollgate replay access.log --limit '{}'",
                policies.join("' --limit '")
            )),
            names: vec!["access.log".to_owned()],
            format: Some("combined"),
            lines: offered.requests,
            span: first_and_last.map(|(first, last)| (at(first.time), at(last.time))),
            ..Source::default()
        },
        offered,
        keys: u64::try_from(keys.len()).unwrap(),
        outcomes: policies.iter().map(|text| outcome(requests, text, bins, bin)).collect(),
        peaks: [SECOND, 60 * SECOND].map(|window| peaks(requests, window)).to_vec(),
        timeline,
    }
}

fn at(micros: u64) -> Timestamp {
    Timestamp::from_micros(micros)
}

fn outcome(
    requests: &[SampleRequest],
    text: &str,
    bins: usize,
    bin: impl Fn(u64) -> usize,
) -> Outcome {
    let policy: Policy = text.parse().unwrap();
    let clock = ManualClock::at(at(requests.first().map_or(0, |x| x.time)));
    let limiter = MemoryLimiter::builder().clock(clock.clone()).build();
    let mut outcome = Outcome {
        name: text.to_owned(),
        limits: policy.limits().to_vec(),
        admitted_over_time: vec![0; bins],
        bytes_per_key: 96,
        ..Outcome::default()
    };
    let mut worst: BTreeMap<&[u8], WorstKey> = BTreeMap::new();
    for value in requests {
        clock.set(at(value.time));
        let cost = Cost::new(value.cost).unwrap();
        let is_admitted =
            limiter.check_cost(&policy, Key::new(&value.key).unwrap(), cost).allowed();
        let amount = if is_admitted { &mut outcome.admitted } else { &mut outcome.denied };
        amount.requests += 1;
        amount.cost += value.cost;
        if is_admitted {
            outcome.admitted_over_time[bin(value.time)] += value.cost;
        }
        outcome.decisions.push(RequestOutcome {
            time: at(value.time),
            is_admitted,
            cost: value.cost,
        });
        let key = worst.entry(&value.key).or_insert_with(|| WorstKey {
            key: value.key.clone(),
            policy: None,
            offered: Amount::default(),
            denied: Amount::default(),
            first_denied: at(value.time),
            longest_denial: Micros::new(250_000),
        });
        key.offered.requests += 1;
        key.denied.requests += u64::from(!is_admitted);
        key.offered.cost += value.cost;
        key.denied.cost += if is_admitted { 0 } else { value.cost };
    }
    if outcome.decisions.len() > 20_000 {
        outcome.decisions.clear();
    }
    outcome.worst = worst.into_values().filter(|value| value.denied.requests > 0).collect();
    outcome.worst.sort_by_key(|worst| std::cmp::Reverse(worst.denied.requests));
    outcome.keys_denied = u64::try_from(outcome.worst.len()).unwrap();
    outcome.worst.truncate(10);
    outcome.longest_denial = outcome.worst.first().map(|worst| Denial {
        key: worst.key.clone(),
        start: worst.first_denied,
        length: Micros::new(83_500_000),
    });
    outcome.suggestion =
        Some(Suggestion { share_ppm: 1_000, limits: policy.limits().to_vec(), keys_denied: 1 });
    outcome
}

fn peaks(requests: &[SampleRequest], window: u64) -> Peaks {
    let mut counts: BTreeMap<(&[u8], u64), u64> = BTreeMap::new();
    for value in requests {
        *counts.entry((&value.key, value.time / window)).or_default() += value.cost;
    }
    let mut peak_of: BTreeMap<&[u8], u64> = BTreeMap::new();
    for ((key, _), cost) in counts {
        let peak = peak_of.entry(key).or_default();
        *peak = cost.max(*peak);
    }
    let mut keys_by_cost: BTreeMap<u64, u64> = BTreeMap::new();
    for peak in peak_of.values() {
        *keys_by_cost.entry(*peak).or_default() += 1;
    }
    let highest = peak_of.iter().max_by_key(|(_, peak)| **peak);
    Peaks {
        window: Micros::new(window),
        keys_by_cost: keys_by_cost.into_iter().collect(),
        highest: highest.map(|(key, peak)| (*peak, key.to_vec())),
    }
}

/// A report with hostile names, keys and lines.
pub(crate) fn hostile() -> Report {
    const SCRIPT: &str = "</style></title><script>alert(1)</script><img src=x onerror='alert(2)'>";
    let hostile = |text: &str| format!("{SCRIPT}\" onload=\"{text}\u{202e}\u{1b}[31m\0&amp;]]>");
    let mut report = report(&waves(), 10 * SECOND, &["10/s", "100/min fixed"]);
    report.source.names = vec![hostile("name")];
    report.source.command = Some(hostile("command"));
    report.source.invalid = 2;
    report.source.invalid_samples = vec![InvalidLine {
        name: hostile("file"),
        line: 7,
        text: hostile("text"),
        reason: hostile("reason"),
    }];
    for outcome in &mut report.outcomes {
        outcome.name = hostile("outcome");
        for worst in &mut outcome.worst {
            worst.key = hostile("key").into_bytes();
            worst.key.push(0xff);
        }
        outcome.longest_denial = outcome
            .longest_denial
            .take()
            .map(|longest_denial| Denial { key: hostile("denied").into_bytes(), ..longest_denial });
    }
    for peaks in &mut report.peaks {
        peaks.highest = peaks.highest.take().map(|(cost, _)| (cost, hostile("peak").into_bytes()));
    }
    report
}
