//! Constants of the snapshot format.

pub(super) const MAGIC: [u8; 8] = *b"TOLLGATE";
pub(super) const VERSION: u32 = 2;
/// The end of a block that does not end.
pub(super) const FOREVER: u64 = u64::MAX;

/// The kind of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Section {
    Policy,
    Table,
    Keys,
    Blocks,
    End,
}

impl Section {
    pub(super) fn from_byte(byte: u8) -> Option<Section> {
        Some(match byte {
            1 => Section::Policy,
            2 => Section::Table,
            3 => Section::Keys,
            4 => Section::Blocks,
            5 => Section::End,
            _ => return None,
        })
    }

    pub(super) fn to_byte(self) -> u8 {
        match self {
            Section::Policy => 1,
            Section::Table => 2,
            Section::Keys => 3,
            Section::Blocks => 4,
            Section::End => 5,
        }
    }
}

/// Converts a length or a count.
#[expect(clippy::expect_used, reason = "no platform has wider pointers")]
pub(super) fn to_u64(n: usize) -> u64 {
    n.try_into().expect("usize fits u64")
}
