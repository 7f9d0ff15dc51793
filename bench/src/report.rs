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

    /// The CPU time divided by that of another system, in each round.
    fn ratios_to(&self, other: &Series) -> impl Iterator<Item = Hundredths> + Clone {
        let rounds = self.samples.iter().zip(&other.samples);
        rounds.map(|(sample, other)| ratio(sample.cpu_ps, other.cpu_ps))
    }
}

/// The lowest and the highest figure.
fn spread(figures: impl Iterator<Item = u64> + Clone) -> (u64, u64) {
    (figures.clone().min().unwrap_or_default(), figures.max().unwrap_or_default())
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

/// How a cost grows with a number.
#[derive(Clone, Debug)]
pub struct Curve {
    /// A part of the name of the picture.
    pub name: &'static str,
    /// What grows.
    pub title: &'static str,
    /// What the number counts.
    pub unit: &'static str,
    /// The numbers by ascending size, and what was measured with each.
    pub points: Vec<(u64, Row)>,
}

impl Curve {
    /// The systems, with the CPU time per operation at each number, in ns.
    #[must_use]
    pub fn series(&self) -> Vec<(&str, Vec<(u64, u64)>)> {
        let systems = self.points.first().map_or(&[][..], |(_, row)| &row.systems);
        let points = |index: usize| {
            let cpu_ns = |row: &Row| row.systems[index].median(|sample| sample.cpu_ps) / 1_000;
            self.points.iter().map(|(number, row)| (*number, cpu_ns(row))).collect()
        };
        systems.iter().enumerate().map(|(index, system)| (&*system.name, points(index))).collect()
    }

    /// The name of the file with its picture.
    #[must_use]
    pub fn file(&self) -> String {
        format!("{}.svg", self.name)
    }
}

/// What was measured in a group.
#[derive(Debug, Default)]
pub struct Report {
    /// What the group measures.
    pub title: &'static str,
    /// The machine, the commit and the load.
    pub machine: String,
    /// The rows.
    pub rows: Vec<Row>,
    /// How the costs grow.
    pub growth: Vec<Curve>,
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
        let mut text = format!("### {}\n\n{}.\n", self.title, self.machine);
        for line in &self.missing {
            text += &format!("\n**Not measured**: {line}\n");
        }
        if !self.rows.is_empty() {
            write_rows(&mut text, &self.rows);
        }
        for curve in &self.growth {
            let (title, file) = (curve.title, curve.file());
            text += &format!("\n#### {title}\n\n![{title}](pictures/growth/{file})\n");
            write_rows(&mut text, curve.points.iter().map(|(_, row)| row));
        }
        if !self.tails.is_empty() {
            text += "\n| Protocol | Server | requests/s | p50, µs | p99, µs | p99.9, µs | never sent |\n\
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

    /// The report with every round.
    #[must_use]
    pub fn json(&self) -> Value {
        let tails = self.tails.iter().map(|tail| {
            let [p50, p99, p999] = tail.latencies_us;
            json!({
                "protocol": tail.protocol, "server": tail.server, "per_second": tail.rate,
                "p50_us": p50, "p99_us": p99, "p99.9_us": p999, "unsent": tail.unsent,
            })
        });
        json!({
            "title": self.title,
            "machine": self.machine,
            "not_measured": self.missing,
            "rows": self.rows.iter().map(row_json).collect::<Vec<_>>(),
            "growth": self.growth.iter().map(curve_json).collect::<Vec<_>>(),
            "latencies": tails.collect::<Vec<_>>(),
        })
    }
}

fn curve_json(curve: &Curve) -> Value {
    let rows: Vec<Value> = curve.points.iter().map(|(_, row)| row_json(row)).collect();
    json!({ "title": curve.title, "rows": rows })
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

fn write_rows<'r>(text: &mut String, rows: impl IntoIterator<Item = &'r Row>) {
    *text += "\n| Work | System | CPU per operation | from, to | CPU ÷ Tollgate's | from, to | operations/s |\n\
              |---|---|---:|---:|---:|---:|---:|\n";
    for row in rows {
        for system in &row.systems {
            let (low, high) = spread(system.samples.iter().map(|sample| sample.cpu_ps));
            let (lowest, highest) = spread(system.ratios_to(&row.systems[0]));
            // Writing to a `String` cannot fail.
            let _ = writeln!(
                text,
                "| {} | {} | {} | {}, {} | {} | {}, {} | {} |",
                row.name,
                system.name,
                time(system.median(|sample| sample.cpu_ps)),
                time(low),
                time(high),
                decimal(median(system.ratios_to(&row.systems[0]))),
                decimal(lowest),
                decimal(highest),
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
            text.contains(
                "| work | tollgate | 42.0 ns | 41.0 ns, 43.0 ns | 1.00 | 1.00, 1.00 | 7 |"
            ),
            "{text}"
        );
        assert!(
            text.contains(
                "| work | peer | 2.00 µs | 2.00 µs, 2.00 µs | 47.66 | 46.58, 48.80 | 7 |"
            ),
            "{text}"
        );
    }

    #[test]
    fn json_has_every_round() {
        let report = Report { rows: vec![measured()], ..Report::default() };
        assert_eq!(report.json()["rows"][0]["systems"][1]["rounds"][2]["cpu_ps"], 2_003_000);
    }
}
