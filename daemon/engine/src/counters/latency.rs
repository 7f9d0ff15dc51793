//! Latency histograms, with the traces of slow requests.

use std::fmt;
use std::sync::Mutex;

use tollgate::{Micros, Timestamp};

use super::counter::{Counter, lock};

/// The upper bounds of the buckets, in µs; one more bucket has no bound.
const BOUNDS: [u64; 13] =
    [25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000];

/// A request of a bucket whose trace is known.
#[derive(Clone, Debug)]
pub struct Exemplar {
    /// Its trace.
    pub trace: TraceId,
    /// How long it took.
    pub duration: Micros,
    /// When it ended.
    pub time: Timestamp,
}

/// One bucket of a histogram.
#[derive(Clone, Debug)]
pub struct LatencyBucket {
    /// The upper bound; absent for the last bucket.
    pub bound: Option<Micros>,
    /// The requests in this bucket alone.
    pub count: u64,
    /// The newest request whose trace is known.
    pub exemplar: Option<Exemplar>,
}

/// A histogram that is updated without locks.
#[derive(Debug, Default)]
pub struct LatencyHistogram {
    counts: [Counter; BOUNDS.len() + 1],
    sum: Counter,
    exemplars: [Mutex<Option<Exemplar>>; BOUNDS.len() + 1],
}

impl LatencyHistogram {
    /// Counts requests that took equally long.
    #[inline]
    pub(crate) fn count(&self, duration: Micros, requests: u64) {
        self.counts[bucket_index(duration)].add(requests);
        self.sum.add(duration.get().saturating_mul(requests));
    }

    /// Keeps the newest exemplar of a bucket. Skips it if another thread is storing one.
    pub(crate) fn set_exemplar(&self, exemplar: Exemplar) {
        if let Ok(mut slot) = self.exemplars[bucket_index(exemplar.duration)].try_lock() {
            *slot = Some(exemplar);
        }
    }

    /// The buckets, by ascending bound.
    #[must_use]
    pub fn buckets(&self) -> Vec<LatencyBucket> {
        let bounds = BOUNDS.into_iter().map(|bound| Some(Micros::new(bound))).chain([None]);
        bounds
            .zip(&self.counts)
            .zip(&self.exemplars)
            .map(|((bound, count), exemplar)| LatencyBucket {
                bound,
                count: count.get(),
                exemplar: lock(exemplar).clone(),
            })
            .collect()
    }

    /// The sum of all durations, in µs.
    #[must_use]
    pub fn sum_micros(&self) -> u64 {
        self.sum.get()
    }
}

#[inline]
fn bucket_index(duration: Micros) -> usize {
    BOUNDS.partition_point(|bound| *bound < duration.get())
}

/// The id of a trace: 32 hexadecimal digits, not all zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceId([u8; 16]);

impl TraceId {
    /// Parses the id of a `traceparent` header; absent unless the whole header is well-formed.
    #[must_use]
    pub fn from_traceparent(traceparent: &str) -> Option<Self> {
        let mut parts = traceparent.split('-');
        let version: [u8; 1] = hexadecimal(parts.next()?)?;
        let trace: [u8; 16] = hexadecimal(parts.next()?)?;
        let parent: [u8; 8] = hexadecimal(parts.next()?)?;
        let _flags: [u8; 1] = hexadecimal(parts.next()?)?;
        // Version 0 has these four parts; later versions may have more.
        let is_complete =
            version == [0] && parts.next().is_none() || (1..0xff).contains(&version[0]);
        (is_complete && trace != [0; 16] && parent != [0; 8]).then_some(TraceId(trace))
    }
}

/// Parses exactly `N` bytes in lower-case hexadecimal digits.
fn hexadecimal<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if pairs.len() != N || !rest.is_empty() {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        *byte = digit(*high)? << 4 | digit(*low)?;
    }
    Some(bytes)
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_counted_in_the_first_bucket_that_contains_it() {
        let histogram = LatencyHistogram::default();
        for micros in [0, 25, 26, 250_000, 250_001, 9_000_000] {
            histogram.count(Micros::new(micros), 1);
        }
        let counts: Vec<_> = histogram.buckets().iter().map(|bucket| bucket.count).collect();
        assert_eq!(counts, [2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2]);
        assert_eq!(histogram.sum_micros(), 9_500_052);
    }

    #[test]
    fn only_a_well_formed_header_has_a_trace_id() {
        const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
        for (header, is_valid) in [
            ("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", true),
            ("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00", true),
            ("cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more", true),
            ("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more", false),
            ("ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", false),
            ("00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01", false),
            ("00-00000000000000000000000000000000-b7ad6b7169203331-01", false),
            ("00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01", false),
            ("00-0af7651916cd43dd8448eb211c80319-b7ad6b7169203331-01", false),
            ("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331", false),
            ("00-0af7651916cd43dd8448eb211c80319\"-b7ad6b7169203331-01", false),
            ("", false),
        ] {
            let parsed = TraceId::from_traceparent(header).map(|id| id.to_string());
            assert_eq!(parsed.as_deref(), is_valid.then_some(TRACE), "{header}");
        }
    }
}
