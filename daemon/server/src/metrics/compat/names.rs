//! The names of statistics in envoyproxy/ratelimit, for StatsD and for Prometheus.

/// The name in StatsD: characters with a meaning there are replaced, and an IPv4 address is one part.
pub(super) fn sanitize(name: &str) -> String {
    let mut sanitized = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(letter) = rest.chars().next() {
        let address_len = address_len(rest);
        let (part, after) = rest.split_at(address_len.unwrap_or(letter.len_utf8()));
        match letter {
            _ if address_len.is_some() => sanitized.push_str(&part.replace('.', "_")),
            ':' | '|' => sanitized.push('_'),
            other => sanitized.push(other),
        }
        rest = after;
    }
    sanitized
}

/// The length of the IPv4 address at the beginning of a text: four numbers of at most three digits.
fn address_len(text: &str) -> Option<usize> {
    let mut length = 0;
    for part in 0..4 {
        if part > 0 {
            length += text.get(length..)?.starts_with('.').then_some(1)?;
        }
        let digits = text.get(length..)?.bytes().take(3).take_while(u8::is_ascii_digit).count();
        length += Some(digits).filter(|digits| *digits > 0)?;
    }
    Some(length)
}

/// The labels of a statistic with this name in StatsD: the domain and the first two keys. Further
/// keys have no label; missing ones are empty.
pub(super) fn labels(name: &str) -> (&str, &str, Option<&str>) {
    let mut parts = name.split('.');
    let mut next = || parts.next();
    (next().unwrap_or_default(), next().unwrap_or_default(), next())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sanitized_for_statsd() {
        for (name, expected) in [
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
            assert_eq!(sanitize(name), expected);
        }
    }

    #[test]
    fn the_first_two_keys_become_labels() {
        for (name, expected) in [
            ("d.k", ("d", "k", None)),
            ("d.k_v.l", ("d", "k_v", Some("l"))),
            ("d.k.l.m.n", ("d", "k", Some("l"))),
            ("d", ("d", "", None)),
        ] {
            assert_eq!(labels(name), expected);
        }
    }
}
