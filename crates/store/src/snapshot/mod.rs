//! Snapshots: what the memory store holds, as bytes and in a directory.
//!
//! A snapshot holds the counters of every table, blocks, leases and reservations, and of each
//! policy what its state is read by: name and limits. Keys that have recovered are left out. So are
//! request ids: they are remembered for 30 s, and a restart takes a good part of that.
//!
//! It is of no single moment: the table is copied in short steps while requests are decided. Each
//! key is in it as it was at some moment between beginning and end, so all that was charged before
//! it began is in it, unless it has recovered; what was charged since is the loss.
//!
//! # Format, version 2
//!
//! Integers are little-endian; `text` and the states are those of [`tollgate_core::codec`].
//!
//! ```text
//! file        header, sections, the last of which is an end
//! header      "TOLLGATE", version: u32, taken at: u64 (µs since the epoch), checksum
//! section     kind: u8, length of the body: u32, body, checksum
//! checksum    u32, the CRC-32 (IEEE) of all bytes of the file before it but checksums
//! record      length: u32, then so many bytes
//!
//! kind        body
//! 1 policy    a policy; the first of a file is number 0, the second number 1
//! 2 table     most keys: u64, name of its policy: text; or 0 and no name: the table of all others
//! 3 keys      of that table, records of: policy: u32, key state, key: the rest
//! 4 blocks    of that table, records of: name of the policy: text,
//!             until: u64 (2^64 − 1: for ever), key: the rest
//! 5 end       nothing
//! ```
//!
//! A key or block may be there twice, when it left the table and came back while it was copied: the
//! later one counts. As each checksum covers all before it, sections can be neither exchanged nor
//! left out. A CRC-32 finds every change of up to 32 bits in a row, so a flipped byte never passes.

mod copied;
mod directory;
mod error;
mod reader;
mod report;
mod writer;

pub use directory::SnapshotDir;
pub use error::{InvalidSnapshot, SnapshotError};
pub use report::{QuarantinedSnapshot, RestoreReport, SaveReport};

const MAGIC: [u8; 8] = *b"TOLLGATE";
const VERSION: u32 = 2;
/// What stands for a block without an end.
const FOREVER: u64 = u64::MAX;

/// What a section holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Section {
    Policy,
    Table,
    Keys,
    Blocks,
    End,
}

impl Section {
    const ALL: [(u8, Section); 5] = [
        (1, Section::Policy),
        (2, Section::Table),
        (3, Section::Keys),
        (4, Section::Blocks),
        (5, Section::End),
    ];

    fn of(kind: u8) -> Option<Section> {
        Section::ALL.iter().find(|x| x.0 == kind).map(|x| x.1)
    }

    fn kind(self) -> u8 {
        Section::ALL.iter().find(|x| x.1 == self).map_or(0, |x| x.0)
    }
}
