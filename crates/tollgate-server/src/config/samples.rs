//! What the daemon runs with where nobody says.

use super::Config;

/// The sample policies: name, limits, what for.
const SAMPLES: [(&str, &str); 4] = [
    ("api", "10/s burst 20"),
    ("jobs", "20 concurrent lease 60s"),
    ("login", "5/min log"),
    ("search", "10/s fixed; 120/min fixed; 240/h sliding by 1min"),
];

impl Config {
    /// The defaults, with policies to try.
    #[must_use]
    pub fn samples() -> Config {
        let mut config = Config::default();
        for (name, limits) in SAMPLES {
            // A test shows that all of them are.
            let _ = config.policies.define(name, limits);
        }
        config
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sample_is_a_policy() {
        let config = Config::samples();
        let names: Vec<_> = config.policies.iter().map(|it| it.name()).collect();
        assert_eq!(names, SAMPLES.map(|(name, _)| name));
    }
}
