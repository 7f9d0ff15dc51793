//! What envoyproxy/ratelimit calls its statistics, for StatsD and for Prometheus.

/// A name as StatsD is told it: what StatsD would take for its own signs is replaced, and an
/// address of IPv4 is one part.
pub(super) fn sanitized(name: &str) -> String {
    let mut sanitized = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(letter) = rest.chars().next() {
        let taken = match address(rest) {
            Some(length) => length,
            None => letter.len_utf8(),
        };
        let (part, after) = rest.split_at(taken);
        match part {
            ":" | "|" => sanitized.push('_'),
            _ if taken > letter.len_utf8() => sanitized.push_str(&part.replace('.', "_")),
            _ => sanitized.push_str(part),
        }
        rest = after;
    }
    sanitized
}

/// How long the address of IPv4 is that a text begins with: four numbers of at most three digits.
fn address(text: &str) -> Option<usize> {
    let mut length = 0;
    for part in 0..4 {
        if part > 0 {
            length += text.get(length..)?.starts_with('.').then_some(1)?;
        }
        let digits = text.get(length..)?.bytes().take(3).take_while(u8::is_ascii_digit).count();
        length += Some(digits).filter(|x| *x > 0)?;
    }
    Some(length)
}

/// The labels of a statistic, by its name as StatsD is told it: the domain and the first two keys.
/// What is after them is told of by none.
pub(super) fn labels(name: &str) -> (&str, &str, Option<&str>) {
    let mut parts = name.split('.');
    let mut next = || parts.next();
    (next().unwrap_or_default(), next().unwrap_or_default(), next())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_as_statsd_is_told_them() {
        for (name, told) in [
            ("d.k_v", "d.k_v"),
            ("d:e|f.k", "d_e_f.k"),
            ("d.ip_10.0.0.1.k", "d.ip_10_0_0_1.k"),
            ("1234.5.6.7", "1234_5_6_7"),
            ("1.2.3", "1.2.3"),
            ("1.2.3.4567.8.9.10", "1_2_3_4567_8_9_10"),
            ("1.2..3.4", "1.2..3.4"),
            ("é.ü", "é.ü"),
            ("", ""),
        ] {
            assert_eq!(sanitized(name), told);
        }
    }

    #[test]
    fn two_keys_are_told_and_no_more() {
        for (name, told) in [
            ("d.k", ("d", "k", None)),
            ("d.k_v.l", ("d", "k_v", Some("l"))),
            ("d.k.l.m.n", ("d", "k", Some("l"))),
            ("d", ("d", "", None)),
        ] {
            assert_eq!(labels(name), told);
        }
    }
}
