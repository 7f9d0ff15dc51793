//! Reads arbitrary text as a configuration and as a file of descriptors: it is valid, and prints as
//! a text that is equivalent, or each mistake has a place and a report of bounded length.
//!
//! Lines before a NUL are environment variables, without their prefix.
//!
//! `cargo xtask fuzz config`
#![no_main]

use libfuzzer_sys::fuzz_target;
use tollgate_config::{ConfigErrors, Layers, LoadedConfig};
use tollgate_descriptors::{Charging, Domains, ReadOptions, Source};
use tollgate_engine::ActiveConfig;

/// The longest report of a configuration: 20 mistakes, each with its line.
const MAX_REPORT_LEN: usize = 64 * 1024;

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let (variables, yaml) = text.split_once('\0').unwrap_or(("", &text));
    match layers(variables, yaml).read() {
        Ok(loaded) => check_valid(&loaded),
        Err(errors) => check_errors(&errors, yaml),
    }
    for charging in [Charging::Atomic, Charging::Reference] {
        let options = ReadOptions { charging, ..ReadOptions::default() };
        read_descriptors(yaml, &options);
    }
});

fn layers(variables: &str, yaml: &str) -> Layers {
    let variables = variables.lines().filter_map(|line| line.split_once('='));
    let variables =
        variables.map(|(name, value)| (format!("TOLLGATE_{name}").into(), value.into()));
    Layers::new().named_yaml("fuzz.yaml", yaml).environment(variables)
}

/// The printed configuration is valid and prints the same.
fn check_valid(loaded: &LoadedConfig) {
    // The files of tokens may be missing.
    let _ = ActiveConfig::new(&loaded.config);
    let printed = loaded.print(false);
    for text in [&printed, &loaded.print(true)] {
        match Layers::new().named_yaml("fuzz.yaml", text).read() {
            Ok(again) => assert_eq!(again.print(false), printed),
            // A masked secret is not valid.
            Err(errors) => assert!(printed.contains("***"), "{errors}\n{printed}"),
        }
    }
}

fn check_errors(errors: &ConfigErrors, yaml: &str) {
    assert!(errors.count() > 0);
    // A carriage return ends a line, too.
    let lines = yaml.split(['\n', '\r']).count();
    for error in errors.iter() {
        assert!(!error.message().is_empty());
        assert!(error.line().is_none_or(|line| (1..=lines).contains(&line)), "{error}");
    }
    assert!(errors.report().len() < MAX_REPORT_LEN, "{errors}");
}

fn read_descriptors(yaml: &str, options: &ReadOptions) {
    match Domains::from_yaml(&[Source::new("fuzz.yaml", yaml)], options) {
        Ok(domains) => {
            let names: Vec<_> = domains.domains().collect();
            assert!(!names.contains(&""));
            assert!(domains.policies().all(|(domain, _)| names.contains(&domain)));
            // One line for each rule.
            assert!(domains.dump().is_empty() || domains.dump().ends_with('\n'));
            for name in names {
                let _ = domains.find(name, &[("u", "v"), ("p", "")]);
            }
        }
        Err(error) => assert!(!error.message.is_empty()),
    }
}
