//! The rows of policies and keys, their order, and their cells.

use std::cmp::Ordering;

use serde_json::{Value, json};

use crate::number::grouped;
use crate::top::rates::{Counts, Window};
use crate::top::reading::{Key, Policy};
use crate::usage::ago;

/// The number of columns of both tables.
pub(super) const COLUMNS: usize = 6;
/// The headers of policies.
pub(super) const POLICY_COLUMNS: [&str; COLUMNS] =
    ["POLICY", "RATE/S", "DENIED/S", "SHADOW/S", "DEGRADED/S", "DENIED"];
/// The headers of keys.
pub(super) const KEY_COLUMNS: [&str; COLUMNS] =
    ["KEY", "RATE/S", "DENIED/S", "ALLOWED", "DENIED", "LAST"];
/// The column of rates, by which tables are ordered at first.
pub(super) const RATE: usize = 1;

/// A row of a table.
#[derive(Debug)]
pub(super) struct Row<'a, T> {
    pub(super) item: &'a T,
    pub(super) id: String,
    /// Absent until it is known.
    pub(super) rates: Option<Counts<f64>>,
}

/// A policy or a key.
pub(super) trait Item: Sized {
    const HEADERS: [&str; COLUMNS];
    fn id(&self) -> String;
    fn name(&self) -> &str;
    /// The cells behind the name, the rate and the denials.
    fn cells(&self, rates: Option<&Counts<f64>>, now: f64) -> [String; 3];
    /// The order by one of these columns, from the largest to the smallest.
    fn compare(a: &Row<'_, Self>, b: &Row<'_, Self>, column: usize) -> Ordering;
    fn json(&self, rates: Option<&Counts<f64>>) -> Value;
}

impl Item for Policy {
    const HEADERS: [&str; COLUMNS] = POLICY_COLUMNS;

    fn id(&self) -> String {
        self.name.clone()
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn cells(&self, rates: Option<&Counts<f64>>, _now: f64) -> [String; 3] {
        let rate = |value: fn(&Counts<f64>) -> f64| rate_text(rates.map(value));
        [
            rate(|rates| rates.shadow_denied),
            rate(|rates| rates.degraded),
            grouped(self.totals.denied),
        ]
    }

    fn compare(a: &Row<'_, Self>, b: &Row<'_, Self>, column: usize) -> Ordering {
        match column {
            3 => by_rate(a, b, |rates| rates.shadow_denied),
            4 => by_rate(a, b, |rates| rates.degraded),
            _ => b.item.totals.denied.cmp(&a.item.totals.denied),
        }
    }

    fn json(&self, rates: Option<&Counts<f64>>) -> Value {
        let Policy { name, limits, tracked, totals } = self;
        json!({ "name": name, "limits": limits, "tracked": tracked, "rates": rates, "totals": totals })
    }
}

impl Item for Key {
    const HEADERS: [&str; COLUMNS] = KEY_COLUMNS;

    fn id(&self) -> String {
        Key::id(self)
    }

    fn name(&self) -> &str {
        &self.key
    }

    fn cells(&self, _rates: Option<&Counts<f64>>, now: f64) -> [String; 3] {
        let usage = &self.usage;
        [grouped(usage.allowed), grouped(usage.denied), ago(usage.last_seen, now)]
    }

    fn compare(a: &Row<'_, Self>, b: &Row<'_, Self>, column: usize) -> Ordering {
        let (a, b) = (&a.item.usage, &b.item.usage);
        match column {
            3 => b.allowed.cmp(&a.allowed),
            4 => b.denied.cmp(&a.denied),
            _ => b.last_seen.total_cmp(&a.last_seen),
        }
    }

    fn json(&self, rates: Option<&Counts<f64>>) -> Value {
        let Key { key, key_base64, usage } = self;
        let rates = rates.map(|rates| json!({ "allowed": rates.allowed, "denied": rates.denied }));
        let mut object = json!({ "key": key, "rates": rates, "usage": usage });
        if let Some(base64) = key_base64 {
            object["key_base64"] = base64.as_str().into();
        }
        object
    }
}

/// The rows of these items in the order of a column; rows of equal rank by name.
pub(super) fn rows<'a, T: Item>(
    items: impl IntoIterator<Item = &'a T>,
    window: &Window,
    column: usize,
) -> Vec<Row<'a, T>> {
    let row = |item: &'a T| {
        let id = item.id();
        Row { item, rates: window.rates(&id), id }
    };
    let mut rows: Vec<_> = items.into_iter().map(row).collect();
    rows.sort_by(|a, b| {
        let order = match column {
            0 => Ordering::Equal,
            RATE => by_rate(a, b, Counts::total),
            2 => by_rate(a, b, |rates| rates.denied),
            _ => T::compare(a, b, column),
        };
        order.then_with(|| a.item.name().cmp(b.item.name()))
    });
    rows
}

/// Larger rates first, and unknown ones last.
fn by_rate<T>(a: &Row<'_, T>, b: &Row<'_, T>, value: fn(&Counts<f64>) -> f64) -> Ordering {
    let rate = |row: &Row<'_, T>| row.rates.as_ref().map_or(-1.0, value);
    rate(b).total_cmp(&rate(a))
}

impl<T: Item> Row<'_, T> {
    pub(super) fn json(&self) -> Value {
        self.item.json(self.rates.as_ref())
    }

    /// Its cells, at a time of the daemon's clock.
    pub(super) fn cells(&self, now: f64) -> [String; COLUMNS] {
        let rates = self.rates.as_ref();
        let [third, fourth, last] = self.item.cells(rates, now);
        [
            // Clients choose keys, and control characters must not reach the terminal.
            self.item.name().escape_debug().to_string(),
            rate_text(rates.map(Counts::total)),
            rate_text(rates.map(|rates| rates.denied)),
            third,
            fourth,
            last,
        ]
    }
}

/// A rate with one decimal, or from 1,000 on without.
pub(super) fn rate_text(rate: Option<f64>) -> String {
    match rate {
        None => "-".to_owned(),
        Some(0.0) => "0".to_owned(),
        Some(rate) if rate < 999.95 => format!("{rate:.1}"),
        Some(rate) => grouped(format!("{rate:.0}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_one_decimal_below_a_thousand() {
        let rates = [None, Some(0.0), Some(0.2), Some(999.94), Some(999.96), Some(1_234_567.8)];
        assert_eq!(rates.map(rate_text), ["-", "0", "0.2", "999.9", "1,000", "1,234,568"]);
    }
}
