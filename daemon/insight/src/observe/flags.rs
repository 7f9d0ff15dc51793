//! The notifications that a server sends.

use tollgate_redis::Primary;

/// What an observer needs: notifications by key (`K`), of strings (`$`) and of expiry (`x`).
const NEEDED: [char; 3] = ['K', '$', 'x'];

/// Flags that are missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Missing {
    current: String,
    missing: Vec<char>,
}

/// Returns which flags are missing, if some are. `A` stands for all events.
pub(super) fn missing(flags: &str) -> Option<Missing> {
    let has = |flag: &char| flags.contains(*flag) || *flag != 'K' && flags.contains('A');
    let missing: Vec<_> = NEEDED.into_iter().filter(|flag| !has(flag)).collect();
    (!missing.is_empty()).then(|| Missing { current: flags.to_owned(), missing })
}

impl Missing {
    /// What is missing at a server, and the command that adds it.
    pub(super) fn message(&self, primary: &Primary) -> String {
        let Missing { current, missing } = self;
        let names: Vec<_> = missing.iter().map(char::to_string).collect();
        let (options, names) = (primary.redis_cli_options(), names.join(", "));
        let all: String = current.chars().chain(missing.iter().copied()).collect();
        format!(
            "notify-keyspace-events of {primary} is {current:?} and lacks {names}; run: redis-cli \
             {options} CONFIG SET notify-keyspace-events '{all}'"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_flags_are_named() {
        for (flags, expected) in [
            ("", Some("K$x")),
            ("AK", None),
            ("KA", None),
            ("AE", Some("K")),
            ("$xK", None),
            ("K$", Some("x")),
            ("Ex", Some("K$")),
            ("gKh", Some("$x")),
        ] {
            let missing = missing(flags).map(|missing| missing.missing.into_iter().collect());
            assert_eq!(missing, expected.map(str::to_owned), "{flags}");
        }
    }
}
