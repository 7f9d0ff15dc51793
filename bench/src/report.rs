//! What was measured: rows of systems that do the same work, and latencies.

use std::fmt::Write;

use anyhow::Result;
use serde_json::{Value, json};

use crate::figures::{Hundredths, decimal, median, ratio};

/// One round of one system.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// Operations per second.
    pub rate: u64,
    /// CPU time per operation, in picoseconds.
    pub cpu_ps: u64,
}

/// A system of a row.
#[derive(Clone, Debug)]
pub struct Series {
    name: String,
    samples: Vec<Sample>,
}

/// Systems that do the same work; the first is Tollgate.
#[derive(Clone, Debug)]
pub struct Row {
    name: String,
    systems: Vec<Series>,
}

impl Row {
    /// Measures all systems in turn, in each round.
    ///
    /// # Errors
    /// A measurement fails.
    pub fn measure<S>(
        name: impl Into<String>,
        rounds: usize,
        systems: &mut [(String, S)],
        mut measure: impl FnMut(&mut S) -> Result<Sample>,
    ) -> Result<Self> {
        let series = |(name, _): &(String, S)| Series { name: name.clone(), samples: Vec::new() };
        let mut row = Row { name: name.into(), systems: systems.iter().map(series).collect() };
        for _ in 0..rounds {
            for (series, (_, system)) in row.systems.iter_mut().zip(systems.iter_mut()) {
                series.samples.push(measure(system)?);
            }
        }
        Ok(row)
    }
}

impl Series {
    fn median(&self, figure: fn(&Sample) -> u64) -> u64 {
        median(self.samples.iter().map(figure))
    }

    /// The lowest and the highest CPU time.
    fn spread(&self) -> (u64, u64) {
        let cpu = || self.samples.iter().map(|sample| sample.cpu_ps);
        (cpu().min().unwrap_or_default(), cpu().max().unwrap_or_default())
    }

    /// The CPU time divided by that of another system in the same round; the median of the rounds.
    fn ratio_to(&self, other: &Series) -> Hundredths {
        let rounds = self.samples.iter().zip(&other.samples);
        median(rounds.map(|(sample, other)| ratio(sample.cpu_ps, other.cpu_ps)))
    }
}

/// Latencies of requests that were sent at a steady rate.
#[derive(Clone, Debug)]
pub struct Tail {
    /// The protocol.
    pub protocol: &'static str,
    /// The server.
    pub server: String,
    /// Requests per second.
    pub rate: u64,
    /// The latencies at 50, 99 and 99.9 percent, in µs.
    pub latencies_us: [u64; 3],
    /// Requests that were due and never sent.
    pub unsent: u64,
}

/// All that was measured.
#[derive(Debug, Default)]
pub struct Report {
    /// The machine and its load.
    pub machine: Vec<String>,
    /// The rows.
    pub rows: Vec<Row>,
    /// How the costs of Tollgate grow, as rows.
    pub growth: Vec<Row>,
    /// The latencies.
    pub tails: Vec<Tail>,
    /// Systems that were not measured, and how to get them.
    pub missing: Vec<String>,
}

impl Report {
    /// Notes a system that is not measured, once.
    pub fn note_missing(&mut self, line: String) {
        if !self.missing.contains(&line) {
            self.missing.push(line);
        }
    }

    /// The report in Markdown.
    #[must_use]
    pub fn markdown(&self) -> String {
        let mut text = String::new();
        for line in &self.machine {
            text += &format!("- {line}\n");
        }
        for line in &self.missing {
            text += &format!("- **Not measured**: {line}\n");
        }
        write_rows(&mut text, "Costs", &self.rows);
        write_rows(&mut text, "Growth", &self.growth);
        if !self.tails.is_empty() {
            text += "\n### Latencies at half of the saturation\n\n\
                     | Protocol | Server | requests/s | p50, µs | p99, µs | p99.9, µs | never sent |\n\
                     |---|---|---:|---:|---:|---:|---:|\n";
            for Tail { protocol, server, rate, latencies_us: [p50, p99, p999], unsent } in
                &self.tails
            {
                text += &format!(
                    "| {protocol} | {server} | {rate} | {p50} | {p99} | {p999} | {unsent} |\n"
                );
            }
        }
        text
    }

    /// The report with every round, as JSON.
    #[must_use]
    pub fn json(&self) -> String {
        let tails = self.tails.iter().map(|tail| {
            let [p50, p99, p999] = tail.latencies_us;
            json!({
                "protocol": tail.protocol, "server": tail.server, "per_second": tail.rate,
                "p50_us": p50, "p99_us": p99, "p99.9_us": p999, "unsent": tail.unsent,
            })
        });
        let report = json!({
            "machine": self.machine,
            "not_measured": self.missing,
            "rows": self.rows.iter().map(row_json).collect::<Vec<_>>(),
            "growth": self.growth.iter().map(row_json).collect::<Vec<_>>(),
            "latencies": tails.collect::<Vec<_>>(),
        });
        format!("{report:#}\n")
    }
}

fn row_json(row: &Row) -> Value {
    let systems = row.systems.iter().map(|system| {
        let sample =
            |sample: &Sample| json!({ "per_second": sample.rate, "cpu_ps": sample.cpu_ps });
        let rounds: Vec<Value> = system.samples.iter().map(sample).collect();
        json!({ "name": system.name, "rounds": rounds })
    });
    json!({ "name": row.name, "systems": systems.collect::<Vec<_>>() })
}

fn write_rows(text: &mut String, title: &str, rows: &[Row]) {
    if rows.is_empty() {
        return;
    }
    *text += &format!(
        "\n### {title}\n\n\
         | Work | System | CPU per operation | from, to | CPU ÷ Tollgate's | operations/s |\n\
         |---|---|---:|---:|---:|---:|\n"
    );
    for row in rows {
        for system in &row.systems {
            let (low, high) = system.spread();
            // Writing to a `String` cannot fail.
            let _ = writeln!(
                text,
                "| {} | {} | {} | {}, {} | {} | {} |",
                row.name,
                system.name,
                time(system.median(|sample| sample.cpu_ps)),
                time(low),
                time(high),
                decimal(system.ratio_to(&row.systems[0])),
                system.median(|sample| sample.rate),
            );
        }
    }
}

/// A CPU time in ns, or in µs from 1 µs on.
fn time(ps: u64) -> String {
    const MICROSECOND: u64 = 1_000_000;
    match ps < MICROSECOND {
        true => format!("{}.{} ns", ps / 1_000, ps % 1_000 / 100),
        false => format!("{} µs", decimal(ps / (MICROSECOND / 100))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured() -> Row {
        let mut systems = [("tollgate".to_owned(), 40_000), ("peer".to_owned(), 2_000_000)];
        Row::measure("work", 3, &mut systems, |cpu_ps| {
            *cpu_ps += 1_000;
            Ok(Sample { rate: 7, cpu_ps: *cpu_ps })
        })
        .unwrap()
    }

    #[test]
    fn table_has_median_spread_and_ratio() {
        let report = Report { rows: vec![measured()], ..Report::default() };
        let text = report.markdown();
        assert!(
            text.contains("| work | tollgate | 42.0 ns | 41.0 ns, 43.0 ns | 1.00 | 7 |"),
            "{text}"
        );
        assert!(
            text.contains("| work | peer | 2.00 µs | 2.00 µs, 2.00 µs | 47.66 | 7 |"),
            "{text}"
        );
    }

    #[test]
    fn json_has_every_round() {
        let report = Report { rows: vec![measured()], ..Report::default() };
        let json: Value = serde_json::from_str(&report.json()).unwrap();
        assert_eq!(json["rows"][0]["systems"][1]["rounds"][2]["cpu_ps"], 2_003_000);
    }
}
