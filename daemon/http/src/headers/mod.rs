//! The headers that tell a client its limits: a file for each style, all of one shape.

mod draft11;
mod draft6;
mod legacy_delta;
mod legacy_epoch;
mod quota;
#[cfg(test)]
mod tests;

use hyper::header::HeaderMap;
use tollgate::{Decision, Policy};

pub(super) use self::quota::violated;
use tollgate_config::HeaderStyle;

/// Tells, in each of the styles, what these decisions leave. A shadow policy's are not told, nor
/// are those that no limit made, such as a list's.
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
                // Both drafts have a `RateLimit-Policy`, in grammars that do not mix.
                let is_alone = !styles.contains(&HeaderStyle::Draft11);
                draft6::write(headers, quotas, is_alone);
            }
            HeaderStyle::LegacyDelta => legacy_delta::write(headers, quotas),
            HeaderStyle::LegacyEpoch => legacy_epoch::write(headers, quotas),
        }
    }
}
