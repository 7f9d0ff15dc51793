//! Rate limit headers in the styles of the configuration.

mod draft11;
mod quota;
mod single;
#[cfg(test)]
mod tests;

use hyper::header::HeaderMap;
use tollgate::{Decision, Policy};

use self::quota::Quota;
pub(super) use self::quota::violated;
use tollgate_config::HeaderStyle;

/// Writes the limits of these decisions in each of the styles. Omits shadow policies, and decisions
/// without limits, such as those of a key list.
pub fn write<'a>(
    styles: &[HeaderStyle],
    headers: &mut HeaderMap,
    decisions: impl Iterator<Item = (&'a Policy, &'a Decision)> + Clone,
) {
    for style in styles {
        let quotas = quota::all(decisions.clone());
        match style {
            HeaderStyle::Draft11 => draft11::write(headers, quotas),
            HeaderStyle::Draft6 => {
                // Both drafts have a `RateLimit-Policy`, in incompatible grammars.
                let with_policy = !styles.contains(&HeaderStyle::Draft11);
                single::write_draft6(headers, quotas, with_policy);
            }
            HeaderStyle::LegacyDelta => {
                single::write_legacy(headers, quotas, Quota::reset_seconds);
            }
            HeaderStyle::LegacyEpoch => {
                single::write_legacy(headers, quotas, Quota::epoch_seconds);
            }
        }
    }
}
