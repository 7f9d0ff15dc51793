//! Keys in logs and in the audit.

use std::fmt::Write;

use sha2::{Digest, Sha256};

use crate::config::Privacy;

/// The longest key that is shown in full, in bytes.
const MAX_PLAIN_LEN: usize = 256;
/// The characters of a masked key that are shown.
const MASK_PREFIX: usize = 2;
/// The shortest key, in bytes, whose first characters are shown; of a shorter key, two characters
/// would reveal too much.
const MIN_MASKED_LEN: usize = 8;

/// Formats a key in one line, whatever bytes it has.
///
/// - `plain`: unchanged, with unprintable characters escaped.
/// - `masked`: the first two characters and the next power of two of the length, such as `us…(≤8)`:
///   kinds of keys can be distinguished, single keys cannot.
/// - `hashed`: 16 hexadecimal digits of SHA-256 over namespace and key. All processes of an
///   installation share the namespace, so that a key can be followed across restarts and hosts,
///   which a secret drawn at start would prevent. A reader who knows the namespace can guess keys,
///   such as all addresses: this protects against readers of logs, not against attackers.
pub(crate) fn display_key(key: &[u8], privacy: Privacy, namespace: &str) -> String {
    match privacy {
        Privacy::Plain => plain(key),
        Privacy::Masked => {
            let max_len = key.len().next_power_of_two();
            let text = String::from_utf8_lossy(key);
            let prefix_len = if key.len() < MIN_MASKED_LEN { 0 } else { MASK_PREFIX };
            let prefix: String = text.chars().take(prefix_len).collect();
            format!("{}…(≤{max_len})", prefix.escape_debug())
        }
        Privacy::Hashed => {
            // A namespace has no zero byte, so that distinct pairs hash distinct bytes.
            let hash = Sha256::new().chain_update(namespace).chain_update([0]).chain_update(key);
            let mut digits = String::with_capacity(16);
            for byte in hash.finalize().iter().take(8) {
                // Writing to a `String` cannot fail.
                let _ = write!(digits, "{byte:02x}");
            }
            digits
        }
    }
}

/// The longest prefix of keys, in characters, that a client may search for; absent for any.
pub(crate) fn max_prefix(privacy: Privacy) -> Option<usize> {
    match privacy {
        Privacy::Plain => None,
        Privacy::Masked => Some(MASK_PREFIX),
        Privacy::Hashed => Some(0),
    }
}

fn plain(key: &[u8]) -> String {
    let (first, rest) = key.split_at(key.len().min(MAX_PLAIN_LEN));
    let mut text = String::with_capacity(first.len());
    for chunk in first.utf8_chunks() {
        text.extend(chunk.valid().escape_debug());
        text.extend(chunk.invalid().escape_ascii().map(char::from));
    }
    if !rest.is_empty() {
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_formatted_by_its_privacy_level() {
        for (key, plain, masked, hashed) in [
            (&b"user:42"[..], "user:42", "…(≤8)", "9d8a8005fe895ea9"),
            (b"user:421", "user:421", "us…(≤8)", ""),
            (b"user:4217", "user:4217", "us…(≤16)", ""),
            (b"", "", "…(≤1)", ""),
            (b"a\nINFO audit who=\"admin\"", "a\\nINFO audit who=\\\"admin\\\"", "a\\n…(≤32)", ""),
            (b"\xff\0k\x1b[2J", "\\xff\\0k\\u{1b}[2J", "…(≤8)", ""),
            ("schlüssel".as_bytes(), "schlüssel", "sc…(≤16)", ""),
        ] {
            assert_eq!(display_key(key, Privacy::Plain, "tollgate"), plain);
            assert_eq!(display_key(key, Privacy::Masked, "tollgate"), masked);
            let hash = display_key(key, Privacy::Hashed, "tollgate");
            assert_eq!(hash.len(), 16);
            assert!(hashed.is_empty() || hash == hashed, "{hash}");
            assert_ne!(hash, display_key(key, Privacy::Hashed, "other"));
        }
        let long = display_key(&[b'k'; 65_536], Privacy::Plain, "tollgate");
        assert_eq!(long.chars().count(), MAX_PLAIN_LEN + 1);
    }
}
