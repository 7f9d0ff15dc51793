//! The validity and the subject of a certificate.

use rustls::pki_types::CertificateDer;
use tollgate::Timestamp;
use tollgate_engine::ClientCertificate;
use tollgate_state::Clock;
use x509_cert::Certificate;
use x509_cert::der::{DateTime, Decode};
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;

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

/// The names in a client certificate.
pub(super) fn client(certificate: &CertificateDer<'_>) -> Option<ClientCertificate> {
    let read = Certificate::from_der(certificate).ok()?.tbs_certificate;
    let shown = |c: char| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c };
    let subject = read.subject.to_string().chars().map(shown).take(MAX_NAME_LEN).collect();
    // Absent if the extension is absent, or is one that cannot be decoded.
    let alternatives = read.get::<SubjectAltName>().ok().flatten().map(|(_, names)| names.0);
    let names = alternatives.into_iter().flatten().filter_map(|name| match name {
        GeneralName::DnsName(name) if !name.as_str().contains(':') => {
            Some(name.as_str().to_ascii_lowercase())
        }
        GeneralName::UniformResourceIdentifier(uri) if uri.as_str().contains(':') => {
            Some(uri.as_str().to_owned())
        }
        _ => None,
    });
    Some(ClientCertificate { subject, names: names.collect() })
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
            assert_eq!(client(certificate.der()).unwrap().subject, shown);
        }
        assert_eq!(client(&CertificateDer::from(vec![1, 2, 3])), None);
    }

    #[test]
    fn names_are_dns_names_and_uris() {
        use rcgen::SanType;

        let ia5 = |text: &str| text.try_into().unwrap();
        let mut params = rcgen::CertificateParams::new(Vec::new()).unwrap();
        params.subject_alt_names = vec![
            SanType::DnsName(ia5("Gateway.Example.org")),
            SanType::URI(ia5("spiffe://Example.org/A")),
            SanType::IpAddress([192, 0, 2, 1].into()),
            SanType::Rfc822Name(ia5("a@example.org")),
            // Names of one kind that look like the other.
            SanType::DnsName(ia5("spiffe://forged")),
            SanType::URI(ia5("forged.example.org")),
        ];
        let certificate = params.self_signed(&rcgen::KeyPair::generate().unwrap()).unwrap();
        let client = client(certificate.der()).unwrap();
        assert_eq!(client.names, ["gateway.example.org", "spiffe://Example.org/A"]);
    }
}
