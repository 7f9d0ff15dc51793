//! Evaluates arbitrary requests: a path has one canonical form, and address and key are values or
//! errors. The first line is a template, the second a pattern, the third the headers of proxies,
//! the rest the target of the request.
//!
//! `cargo xtask fuzz rules`
#![no_main]

use hyper::header::{HeaderMap, HeaderValue};
use libfuzzer_sys::fuzz_target;
use tollgate_daemon::rules::{
    AddressFormat, AddressHeader, Client, Facts, Networks, Path, PathCase, PathPattern, Peer,
    Readings, Template, client_address,
};

const MAX_KEY_LEN: usize = 256;

fuzz_target!(|bytes: &[u8]| {
    let mut lines = bytes.splitn(4, |byte| *byte == b'\n');
    // Missing lines are empty.
    let mut line = || lines.next().unwrap_or_default();
    let (template, pattern, proxies, target) = (line(), line(), line(), line());
    let mut headers = HeaderMap::new();
    if let Ok(value) = HeaderValue::from_bytes(proxies) {
        for name in ["x-forwarded-for", "x-real-ip", "cookie", "authorization"] {
            headers.insert(name, value.clone());
        }
    }
    let pattern = PathPattern::parse(&String::from_utf8_lossy(pattern)).ok();
    check_path(&Path::decoded(target), target);
    let readings = Readings::new(target, PathCase::Sensitive);
    for path in readings.iter().flat_map(|readings| readings.iter()) {
        assert!(path.as_bytes().starts_with(b"/") && path.as_bytes().len() <= target.len() + 1);
        if let Some(pattern) = &pattern {
            let again =
                PathPattern::parse(&pattern.to_string()).expect("a displayed pattern parses");
            assert_eq!(pattern.matches(path), again.matches(path));
        }
        if let Ok(template) = Template::parse(&String::from_utf8_lossy(template)) {
            check_template(&template, &facts(target, &headers), path);
        }
    }
});

/// The canonical form does not change when it is parsed again.
fn check_path(path: &Path<'_>, target: &[u8]) {
    let bytes = path.as_bytes();
    assert!(bytes.starts_with(b"/") && bytes.len() <= target.len() + 1);
    assert!(path.segments().all(|segment| !matches!(segment, b"" | b"." | b"..")));
    let escaped: String = bytes.iter().map(|byte| format!("%{byte:02x}")).collect();
    assert_eq!(&Path::decoded(escaped.as_bytes()), path);
}

fn check_template(template: &Template, facts: &Facts<'_>, path: &Path<'_>) {
    assert_eq!(Template::parse(&template.to_string()).as_ref(), Ok(template));
    match template.key(facts, path, MAX_KEY_LEN) {
        Ok(key) => assert!(!key.is_empty() && key.len() <= MAX_KEY_LEN),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

fn facts<'a>(target: &'a [u8], headers: &'a HeaderMap) -> Facts<'a> {
    let trusted = Networks::parse("10.0.0.0/8, ::1, unix").expect("the networks are valid");
    let mut facts = Facts::new("GET", target, headers);
    for (name, format) in [
        ("x-forwarded-for", AddressFormat::List),
        ("x-real-ip", AddressFormat::Single),
        ("forwarded", AddressFormat::Forwarded),
    ] {
        let address = client_address(headers, AddressHeader { name, format }, Peer::Unix, &trusted);
        if let Ok(address) = address {
            assert_eq!(address, address.to_canonical());
            facts.client = Client::Known(address);
        }
    }
    facts
}
