//! Which slot a key belongs to.

/// How many slots a cluster has.
pub const SLOTS: u16 = 16_384;

/// The slot of a key: CRC16 of it, or of what stands between its first `{` and the next `}`, in
/// 14 bits.
///
/// The formula is that of <https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/>.
///
/// # Example
///
/// ```
/// use tollgate_testkit::slot_of;
///
/// assert_eq!(slot_of("tg:{user}:a"), slot_of("user"));
/// ```
pub fn slot_of(key: impl AsRef<[u8]>) -> u16 {
    crc16(hashed(key.as_ref())) % SLOTS
}

/// What of a key is hashed.
fn hashed(key: &[u8]) -> &[u8] {
    let tag = key.iter().position(|byte| *byte == b'{').and_then(|open| {
        let rest = key.get(open + 1..)?;
        rest.get(..rest.iter().position(|byte| *byte == b'}')?)
    });
    tag.filter(|tag| !tag.is_empty()).unwrap_or(key)
}

/// CRC16 in the variant XMODEM: polynomial 0x1021, nothing reflected, begun with zero.
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
    fn checksums_are_those_of_the_specification() {
        assert_eq!(crc16(b"123456789"), 0x31C3);
        assert_eq!(crc16(b""), 0);
    }

    #[test]
    fn the_first_tag_that_is_not_empty_is_hashed() {
        for (key, expected) in [
            ("foo", "foo"),
            ("{user1000}.following", "user1000"),
            ("foo{}{bar}", "foo{}{bar}"),
            ("foo{{bar}}zap", "{bar"),
            ("foo{bar}{zap}", "bar"),
            ("foo{bar", "foo{bar"),
            ("foo}bar{", "foo}bar{"),
        ] {
            assert_eq!(hashed(key.as_bytes()), expected.as_bytes(), "{key}");
        }
        // As `CLUSTER KEYSLOT` says.
        assert_eq!((slot_of("foo"), slot_of("bar"), slot_of("hello")), (12182, 5061, 866));
    }
}
