//! Numbers in JSON: decimals without floats.

use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use tollgate::{Micros, Timestamp};

/// A number with up to six decimals, such as seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Decimal(Micros);

impl From<Micros> for Decimal {
    fn from(duration: Micros) -> Self {
        Decimal(duration)
    }
}

/// Seconds since the Unix epoch.
impl From<Timestamp> for Decimal {
    fn from(time: Timestamp) -> Self {
        Decimal(Micros::new(time.as_micros()))
    }
}

impl Decimal {
    /// The events per second, to two decimals. Without any time there is no rate.
    pub(crate) fn rate(events: u64, time: Micros) -> Self {
        /// A hundredth of an event per second over a µs, and a hundredth as a [`Decimal`].
        const HUNDREDTHS: u128 = 100 * 1_000_000;
        const HUNDREDTH: u64 = 10_000;
        let time = u128::from(time.get());
        let hundredths = (u128::from(events) * HUNDREDTHS + time / 2).checked_div(time);
        let hundredths = u64::try_from(hundredths.unwrap_or(0)).unwrap_or(u64::MAX);
        Decimal(Micros::new(hundredths.saturating_mul(HUNDREDTH)))
    }
}

impl Serialize for Decimal {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let number = RawValue::from_string(self.0.to_string());
        number.map_err(serde::ser::Error::custom)?.serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_two_decimals() {
        for (events, micros, expected) in [
            (0, 1_000_000, "0"),
            (1, 1_000_000, "1"),
            (1, 3_000_000, "0.33"),
            (2, 3_000_000, "0.67"),
            (1_234_567, 999_999, "1234568.23"),
            (5, 0, "0"),
        ] {
            let rate = Decimal::rate(events, Micros::new(micros));
            assert_eq!(serde_json::to_string(&rate).unwrap(), expected, "{events} in {micros} µs");
        }
    }
}
