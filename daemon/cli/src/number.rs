//! Formatting of numbers.

use std::time::Duration;

/// With commas between thousands.
pub(crate) fn grouped<Number: ToString>(number: Number) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number with a noun: `1 key`, `1,000 keys`.
pub(crate) fn counted(number: usize, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", grouped(number))
}

/// The percentage of `part` in `whole`, with one decimal.
pub(crate) fn percent(part: u64, whole: u64) -> String {
    let tenths = u128::from(part) * 1_000 / u128::from(whole.max(1));
    format!("{}.{} %", tenths / 10, tenths % 10)
}

/// A duration with three significant digits: `950 ns`, `12.3 µs`, `1.05 ms`, `2.31 s`.
pub(crate) fn time(span: Duration) -> String {
    let nanos = span.as_nanos();
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs")];
    let Some((unit, name)) = units.into_iter().find(|unit| nanos >= unit.0) else {
        return format!("{nanos} ns");
    };
    let hundredths = nanos * 100 / unit;
    let whole = hundredths / 100;
    match whole {
        0..10 => format!("{whole}.{:02} {name}", hundredths % 100),
        10..100 => format!("{whole}.{} {name}", hundredths % 100 / 10),
        _ => format!("{whole} {name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_formatted() {
        assert_eq!(
            [0, 999, 1_000, 1_234_567].map(grouped::<u64>),
            ["0", "999", "1,000", "1,234,567"]
        );
        assert_eq!([counted(1, "key"), counted(1_000, "key")], ["1 key", "1,000 keys"]);
        assert_eq!([percent(1, 3), percent(0, 0), percent(5, 5)], ["33.3 %", "0.0 %", "100.0 %"]);
        let times = [950, 12_345, 1_050_000, 2_319_999_999, 120_000_000_000];
        let times = times.map(|t| time(Duration::from_nanos(t)));
        assert_eq!(times, ["950 ns", "12.3 µs", "1.05 ms", "2.31 s", "120 s"]);
    }
}
