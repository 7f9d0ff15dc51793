//! Sums of admitted cost within the window that ends at each moment.

/// The requests of a moment, or of a bin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Moment {
    /// Microseconds since the epoch.
    pub(super) time: u64,
    /// The cost that was admitted.
    pub(super) admitted: u64,
    /// The cost that was denied.
    pub(super) denied: u64,
}

/// The admitted cost in `(t - window, t]` for each `t` at which it changes.
pub(super) fn sums(moments: &[Moment], window: u64) -> Vec<(u64, u64)> {
    let mut sums = Vec::with_capacity(moments.len() * 2);
    let mut sum = 0_u64;
    let mut leaving = moments.iter().peekable();
    for entering in moments {
        // Leave before the next request, or at its time.
        while let Some(next) = leaving.next_if(|leaving| leaves(leaving, window) <= entering.time) {
            sum = sum.saturating_sub(next.admitted);
            put(&mut sums, leaves(next, window), sum);
        }
        sum = sum.saturating_add(entering.admitted);
        put(&mut sums, entering.time, sum);
    }
    for next in leaving {
        sum = sum.saturating_sub(next.admitted);
        put(&mut sums, leaves(next, window), sum);
    }
    sums
}

/// Only the last value at a moment is kept.
fn put(sums: &mut Vec<(u64, u64)>, time: u64, sum: u64) {
    match sums.last_mut() {
        Some(last) if last.0 == time => last.1 = sum,
        _ => sums.push((time, sum)),
    }
}

fn leaves(moment: &Moment, window: u64) -> u64 {
    moment.time.saturating_add(window)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_leaves_after_one_window() {
        let moment = |(time, admitted)| Moment { time, admitted, denied: 0 };
        let moments = [(0, 2), (4, 1), (10, 3), (13, 0)].map(moment);
        let expected = [(0, 2), (4, 3), (10, 4), (13, 4), (14, 3), (20, 0), (23, 0)];
        assert_eq!(sums(&moments, 10), expected);
        assert_eq!(sums(&[], 10), []);
    }

    #[test]
    fn a_fixed_window_admits_twice_its_count_across_an_edge() {
        let moments = [(59, 100), (60, 100)].map(|(time, admitted)| Moment {
            time,
            admitted,
            ..Moment::default()
        });
        assert_eq!(sums(&moments, 60).into_iter().map(|(_, sum)| sum).max(), Some(200));
    }
}
