//! What a certificate says of itself.

use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use tollgate::Timestamp;
use tollgate_store::Clock;
use x509_cert::Certificate;
use x509_cert::der::{DateTime, Decode};

/// How long before its end it is said to end, in seconds.
const SOON: u64 = 14 * 24 * 60 * 60;
/// The most characters of a name that are kept.
const MAX_NAME_LEN: usize = 256;

/// When a certificate holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lifetime {
    from: DateTime,
    to: DateTime,
}

/// The lifetime of the first of a chain.
pub(super) fn lifetime(chain: &[CertificateDer<'_>]) -> Result<Lifetime, String> {
    let first = chain.first().ok_or("there is no certificate in it")?;
    let read =
        Certificate::from_der(first).map_err(|error| format!("it is no certificate: {error}"))?;
    let validity = read.tbs_certificate.validity;
    Ok(Lifetime { from: validity.not_before.to_date_time(), to: validity.not_after.to_date_time() })
}

impl Lifetime {
    /// What there is to say of it now.
    pub(super) fn warning(&self) -> Option<String> {
        self.warning_at(Clock::system().now())
    }

    fn warning_at(&self, now: Timestamp) -> Option<String> {
        let now = now.as_micros() / 1_000_000;
        let (from, to) = (self.from.unix_duration().as_secs(), self.to.unix_duration().as_secs());
        if now < from {
            return Some(format!("it holds only from {} on, so peers refuse it", self.from));
        }
        if now >= to {
            return Some(format!("it ended at {}, so peers refuse it; renew it", self.to));
        }
        (to - now < SOON).then(|| format!("it ends at {}; renew it", self.to))
    }
}

/// Whom a certificate names, as a line of a log can show it.
pub(super) fn subject(certificate: &CertificateDer<'_>) -> Option<Arc<str>> {
    let read = Certificate::from_der(certificate).ok()?;
    let name = read.tbs_certificate.subject.to_string();
    let shown = |c: char| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c };
    let shown: String = name.chars().map(shown).take(MAX_NAME_LEN).collect();
    Some(shown.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_said_two_weeks_before() {
        let day = |x| DateTime::new(2026, 3, x, 0, 0, 0).unwrap();
        let lifetime = Lifetime { from: day(1), to: day(31) };
        for (date, warning) in [
            (DateTime::new(2026, 2, 28, 23, 59, 59).unwrap(), Some("holds only from 2026-03-01")),
            (day(1), None),
            (day(17), None),
            (DateTime::new(2026, 3, 17, 0, 0, 1).unwrap(), Some("it ends at 2026-03-31")),
            (DateTime::new(2026, 3, 30, 23, 59, 59).unwrap(), Some("it ends at 2026-03-31")),
            (day(31), Some("it ended at 2026-03-31")),
        ] {
            let now = Timestamp::from_micros(date.unix_duration().as_secs() * 1_000_000);
            let said = lifetime.warning_at(now);
            let is_said = match (&said, warning) {
                (Some(said), Some(warning)) => said.contains(warning),
                (None, None) => true,
                _ => false,
            };
            assert!(is_said, "{date}: {said:?}");
        }
    }

    #[test]
    fn a_name_is_shown_on_one_line_of_bounded_length() {
        let long = "x".repeat(1_000);
        for (name, shown) in [
            ("gateway", "CN=gateway"),
            ("a,b", "CN=a\\,b"),
            ("a\nlevel=info forged", "CN=a\\0alevel=info forged"),
            (&long, &format!("CN={}", &long[..MAX_NAME_LEN - 3])),
        ] {
            let mut params = rcgen::CertificateParams::new(Vec::new()).unwrap();
            params.distinguished_name = rcgen::DistinguishedName::new();
            params.distinguished_name.push(rcgen::DnType::CommonName, name);
            let key = rcgen::KeyPair::generate().unwrap();
            let certificate = params.self_signed(&key).unwrap();
            assert_eq!(subject(certificate.der()).as_deref(), Some(shown));
        }
        assert_eq!(subject(&CertificateDer::from(vec![1, 2, 3])), None);
    }
}
