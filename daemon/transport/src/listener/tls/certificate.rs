//! The validity and the subject of a certificate.

use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use tollgate::Timestamp;
use tollgate_store::Clock;
use x509_cert::Certificate;
use x509_cert::der::{DateTime, Decode};

/// The time before its expiry in which a certificate is reported, in seconds.
const WARNING_PERIOD: u64 = 14 * 24 * 60 * 60;
/// The maximum length of a subject, in characters; the rest is cut off.
const MAX_NAME_LEN: usize = 256;

/// The validity period of a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lifetime {
    from: DateTime,
    to: DateTime,
}

/// The lifetime of the first certificate of a chain.
pub(super) fn lifetime(chain: &[CertificateDer<'_>]) -> Result<Lifetime, String> {
    let first = chain.first().ok_or("it contains no certificate")?;
    let read = Certificate::from_der(first)
        .map_err(|error| format!("it is not a certificate: {error}"))?;
    let validity = read.tbs_certificate.validity;
    Ok(Lifetime { from: validity.not_before.to_date_time(), to: validity.not_after.to_date_time() })
}

impl Lifetime {
    /// The warning to log now, if any.
    pub(super) fn warning(&self) -> Option<String> {
        self.warning_at(Clock::system().now())
    }

    fn warning_at(&self, now: Timestamp) -> Option<String> {
        let now = now.as_micros() / 1_000_000;
        let (from, to) = (self.from.unix_duration().as_secs(), self.to.unix_duration().as_secs());
        if now < from {
            return Some(format!("it is not valid before {}, so peers reject it", self.from));
        }
        if now >= to {
            return Some(format!("it expired at {}, so peers reject it; renew it", self.to));
        }
        (to - now < WARNING_PERIOD).then(|| format!("it expires at {}; renew it", self.to))
    }
}

/// The subject of a certificate, on one line and with bounded length, for the log.
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
    fn expiry_is_reported_two_weeks_before() {
        let day = |x| DateTime::new(2026, 3, x, 0, 0, 0).unwrap();
        let lifetime = Lifetime { from: day(1), to: day(31) };
        for (date, warning) in [
            (DateTime::new(2026, 2, 28, 23, 59, 59).unwrap(), Some("not valid before 2026-03-01")),
            (day(1), None),
            (day(17), None),
            (DateTime::new(2026, 3, 17, 0, 0, 1).unwrap(), Some("it expires at 2026-03-31")),
            (DateTime::new(2026, 3, 30, 23, 59, 59).unwrap(), Some("it expires at 2026-03-31")),
            (day(31), Some("it expired at 2026-03-31")),
        ] {
            let now = Timestamp::from_micros(date.unix_duration().as_secs() * 1_000_000);
            let actual = lifetime.warning_at(now);
            let is_expected = match (&actual, warning) {
                (Some(actual), Some(warning)) => actual.contains(warning),
                (None, None) => true,
                _ => false,
            };
            assert!(is_expected, "{date}: {actual:?}");
        }
    }

    #[test]
    fn a_subject_is_one_line_of_bounded_length() {
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
