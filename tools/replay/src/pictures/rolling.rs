//! What was admitted within the window that ends at each moment.

/// What was asked at one moment, or in one bin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Moment {
    /// Microseconds since the epoch.
    pub(super) time: u64,
    /// The cost that was admitted.
    pub(super) admitted: u64,
    /// The cost that was denied.
    pub(super) denied: u64,
}

/// The sum of what was admitted in `(t - window, t]` for each `t` at which it changes: what is a
/// window old has left.
pub(super) fn sums(moments: &[Moment], window: u64) -> Vec<(u64, u64)> {
    let mut sums = Vec::with_capacity(moments.len() * 2);
    let mut sum = 0_u64;
    let mut leaving = moments.iter().peekable();
    for entering in moments {
        // All that leave before the next enters, or as it does.
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

/// Of what happens at one moment only the end is seen.
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
    fn what_is_a_window_old_has_left() {
        let moment = |(time, admitted)| Moment { time, admitted, denied: 0 };
        let moments = [(0, 2), (4, 1), (10, 3), (13, 0)].map(moment);
        let expected = [(0, 2), (4, 3), (10, 4), (13, 4), (14, 3), (20, 0), (23, 0)];
        assert_eq!(sums(&moments, 10), expected);
        assert_eq!(sums(&[], 10), []);
    }

    #[test]
    fn a_fixed_window_lets_twice_its_count_pass_across_its_edge() {
        let moments = [(59, 100), (60, 100)].map(|(time, admitted)| Moment {
            time,
            admitted,
            ..Moment::default()
        });
        assert_eq!(sums(&moments, 60).into_iter().map(|(_, sum)| sum).max(), Some(200));
    }
}
