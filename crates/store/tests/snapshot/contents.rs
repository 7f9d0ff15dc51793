//! An independent reader of the documented snapshot format, which the fuzz target also uses.

use std::collections::BTreeSet;

/// The length of the header.
pub(crate) const HEADER: usize = 24;

/// Returns the keys and blocks of a valid snapshot, in any order: table, policy and state, key; or
/// table and block.
pub(crate) fn contents(snapshot: &[u8]) -> BTreeSet<Vec<u8>> {
    let (mut policies, mut table) = (Vec::new(), Vec::new());
    let mut contents = BTreeSet::new();
    for (kind, body) in sections(snapshot) {
        match kind {
            1 => policies.push(body.to_vec()),
            2 => table = body.to_vec(),
            3 => contents.extend(records(body).map(|record| {
                let (number, rest) = record.split_first_chunk::<4>().unwrap();
                let policy = &policies[usize::try_from(u32::from_le_bytes(*number)).unwrap()];
                [b"key", &*table, policy, rest].concat()
            })),
            4 => contents.extend(records(body).map(|record| [b"block", &*table, record].concat())),
            _ => {}
        }
    }
    contents
}

/// Returns the kinds and bodies of the complete sections.
pub(crate) fn sections(snapshot: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    let mut rest = snapshot.get(HEADER..).unwrap_or_default();
    std::iter::from_fn(move || {
        let (kind, behind) = rest.split_first()?;
        let (body, behind) = prefixed(behind)?;
        rest = behind.get(4..)?;
        Some((*kind, body))
    })
}

/// Returns the records of a body.
pub(crate) fn records(mut body: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (record, rest) = prefixed(body)?;
        body = rest;
        Some(record)
    })
}

/// Splits off a 32-bit length and that many bytes.
fn prefixed(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    rest.split_at_checked(usize::try_from(u32::from_le_bytes(*length)).ok()?)
}

/// Returns the same bytes with valid checksums, as far as the sections are complete.
pub(crate) fn sealed(snapshot: &[u8]) -> Vec<u8> {
    let mut sealed = snapshot.to_vec();
    let mut sum = crc32fast::Hasher::new();
    let (mut from, mut to) = (0, HEADER - 4);
    while let Some(field) = sealed.get(to..to + 4) {
        sum.update(&sealed[from..to]);
        let is_sum = sum.clone().finalize().to_le_bytes();
        debug_assert_eq!(field.len(), is_sum.len());
        sealed[to..to + 4].copy_from_slice(&is_sum);
        from = to + 4;
        let Some((_, rest)) = sealed[from..].split_first() else { break };
        let Some((body, _)) = prefixed(rest) else { break };
        to = from + 5 + body.len();
    }
    sealed
}
