//! Hash slots.

/// The number of slots of a cluster.
pub(super) const SLOTS: u16 = 16_384;

/// The slot of a key: the CRC16 of the key, or of the text between its first `{` and the next `}`,
/// modulo 16,384.
///
/// Specified in <https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/>.
///
/// # Example
///
/// ```
/// use tollgate_testkit::slot_of;
///
/// assert_eq!(slot_of("tg:{user}:a"), slot_of("user"));
/// ```
pub fn slot_of(key: impl AsRef<[u8]>) -> u16 {
    crc16(hash_tag(key.as_ref())) % SLOTS
}

/// The part of a key that determines its slot.
fn hash_tag(key: &[u8]) -> &[u8] {
    let tag = key.iter().position(|byte| *byte == b'{').and_then(|open| {
        let rest = key.get(open + 1..)?;
        rest.get(..rest.iter().position(|byte| *byte == b'}')?)
    });
    tag.filter(|tag| !tag.is_empty()).unwrap_or(key)
}

/// CRC16/XMODEM: polynomial 0x1021, not reflected, initial value zero.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| {
        (0..8).fold(crc ^ (u16::from(*byte) << 8), |crc, _| {
            if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ 0x1021 }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_match_the_specification() {
        assert_eq!(crc16(b"123456789"), 0x31C3);
        assert_eq!(crc16(b""), 0);
    }

    #[test]
    fn only_the_first_tag_counts_unless_it_is_empty() {
        for (key, expected) in [
            ("foo", "foo"),
            ("{user1000}.following", "user1000"),
            ("foo{}{bar}", "foo{}{bar}"),
            ("foo{{bar}}zap", "{bar"),
            ("foo{bar}{zap}", "bar"),
            ("foo{bar", "foo{bar"),
            ("foo}bar{", "foo}bar{"),
        ] {
            assert_eq!(hash_tag(key.as_bytes()), expected.as_bytes(), "{key}");
        }
        // Results of `CLUSTER KEYSLOT`.
        assert_eq!((slot_of("foo"), slot_of("bar"), slot_of("hello")), (12182, 5061, 866));
    }
}
