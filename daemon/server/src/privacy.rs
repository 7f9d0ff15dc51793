//! Keys as logs and the audit show them.

use std::fmt::Write;

use sha2::{Digest, Sha256};

use crate::config::Privacy;

/// The most bytes of a key that are shown as they are.
const MAX_SHOWN: usize = 256;
/// How many characters of a masked key show, and how many bytes it must have for that: of a
/// shorter one they would be too much.
const FIRST_SHOWN: usize = 2;
const MIN_MASKED_LEN: usize = 8;

/// A key as it may be shown: one line, whatever bytes it has.
///
/// - `plain`: as it is, with what cannot be printed escaped.
/// - `masked`: its first two characters and a power of two that its length does not exceed, as in
///   `us…(≤8)`: enough to tell kinds of keys apart, too little to tell keys.
/// - `hashed`: 16 hexadecimal digits of SHA-256 over namespace and key. The namespace is what all
///   processes of an installation share, so that a key can be followed over restarts and hosts;
///   a secret drawn at start would end that. It follows that whoever knows the namespace can try
///   keys out, such as all addresses: it hides keys from readers of logs, not from attackers.
pub(crate) fn shown(key: &[u8], privacy: Privacy, namespace: &str) -> String {
    match privacy {
        Privacy::Plain => plain(key),
        Privacy::Masked => {
            let class = key.len().next_power_of_two();
            let text = String::from_utf8_lossy(key);
            let first = if key.len() < MIN_MASKED_LEN { 0 } else { FIRST_SHOWN };
            let first: String = text.chars().take(first).collect();
            format!("{}…(≤{class})", first.escape_debug())
        }
        Privacy::Hashed => {
            // No namespace has a zero byte, so that no two pairs are the same bytes.
            let hash = Sha256::new().chain_update(namespace).chain_update([0]).chain_update(key);
            let mut digits = String::with_capacity(16);
            for byte in hash.finalize().iter().take(8) {
                // Writing to a string does not fail.
                let _ = write!(digits, "{byte:02x}");
            }
            digits
        }
    }
}

fn plain(key: &[u8]) -> String {
    let (first, rest) = key.split_at(key.len().min(MAX_SHOWN));
    let mut shown = String::with_capacity(first.len());
    for chunk in first.utf8_chunks() {
        shown.extend(chunk.valid().escape_debug());
        shown.extend(chunk.invalid().escape_ascii().map(char::from));
    }
    if !rest.is_empty() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_shows_as_its_privacy_says() {
        for (key, plain, masked, hashed) in [
            (&b"user:42"[..], "user:42", "…(≤8)", "9d8a8005fe895ea9"),
            (b"user:421", "user:421", "us…(≤8)", ""),
            (b"user:4217", "user:4217", "us…(≤16)", ""),
            (b"", "", "…(≤1)", ""),
            (b"a\nINFO audit who=\"admin\"", "a\\nINFO audit who=\\\"admin\\\"", "a\\n…(≤32)", ""),
            (b"\xff\0k\x1b[2J", "\\xff\\0k\\u{1b}[2J", "…(≤8)", ""),
            ("schlüssel".as_bytes(), "schlüssel", "sc…(≤16)", ""),
        ] {
            assert_eq!(shown(key, Privacy::Plain, "tollgate"), plain);
            assert_eq!(shown(key, Privacy::Masked, "tollgate"), masked);
            let hash = shown(key, Privacy::Hashed, "tollgate");
            assert_eq!(hash.len(), 16);
            assert!(hashed.is_empty() || hash == hashed, "{hash}");
            assert_ne!(hash, shown(key, Privacy::Hashed, "other"));
        }
        let long = shown(&[b'k'; 65_536], Privacy::Plain, "tollgate");
        assert_eq!(long.chars().count(), MAX_SHOWN + 1);
    }
}
