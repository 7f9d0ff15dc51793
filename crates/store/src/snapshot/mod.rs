//! Snapshots of the in-memory store, as bytes and in a directory.
//!
//! A snapshot contains the counters of every table, blocks, leases and reservations, and the name
//! and limits of each policy, which the counters need. Keys that have recovered are omitted.
//! Request ids are omitted, too: they last 30 s, much of which a restart takes.
//!
//! A snapshot is not of a single point in time: the tables are copied in short steps while requests
//! are decided. Each key has the state of some time between start and end. So all charges made
//! before the start are included, unless they have recovered; later charges may be missing.
//!
//! # Format, version 3
//!
//! Integers are little-endian; `text` and the states are those of [`tollgate_algorithms::codec`].
//!
//! ```text
//! file        header, sections; the last section is an end
//! header      "TOLLGATE", version: u32, taken at: u64 (µs since the epoch), checksum
//! section     kind: u8, length of the body: u32, body, checksum
//! checksum    u32, the CRC-32 (IEEE) of all bytes of the file before it but checksums
//! record      length: u32, then that many bytes
//!
//! kind        body
//! 1 policy    a policy; they are numbered from 0 in order
//! 2 table     max_keys: u64, name of its policy: text; or 0 and no name: the shared table
//! 3 keys      of that table, records of: number of the policy: u32, key state, key
//! 4 blocks    of that table, records of: name of the policy: text,
//!             until: u64 (2^64 − 1: no end), key
//! 5 end       nothing
//!
//! key         the rest of its record: 0: u8, 1 to 256 bytes; or 1: u8, the first 26 bytes of the
//!             SHA-256 of a longer key
//! ```
//!
//! A key or block can occur twice, if it was removed and inserted during the copy: the later record
//! counts. Each checksum covers everything before it, so reordered or missing sections are
//! detected. A CRC-32 detects every change within 32 consecutive bits, so it detects every damaged
//! byte.
//!
//! Version 2, which is read, too, has every key as it is, of up to 65,536 bytes.

mod copy_buffer;
mod directory;
mod error;
mod format;
mod reader;
mod report;
mod writer;

pub use directory::SnapshotDir;
pub use error::{InvalidSnapshot, SnapshotError};
pub use report::{QuarantinedSnapshot, RestoreReport, SaveReport};
