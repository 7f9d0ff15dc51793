//! Compressed logs that decompress to more than a hundred times as much.

use std::io::Write;
use std::path::Path;
use std::process::Command;

use flate2::Compression;
use flate2::write::GzEncoder;
use tollgate_testkit::Folder;

use crate::process;

/// The maximum virtual memory of the tool, as KiB: less than half of what the logs decompress to.
const MAX_MEMORY: usize = 400_000;
const MIB: usize = 1024 * 1024;

/// Runs the tool on a log within [`MAX_MEMORY`], and returns its output.
fn replay(log: &Path) -> String {
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(format!("ulimit -v {MAX_MEMORY}; exec \"$@\"")).arg("sh");
    shell.arg(env!("CARGO_BIN_EXE_tollgate")).arg("replay").arg(log);
    shell.args(["--limit", "1/s", "--threads", "1"]);
    let (code, output, error) = process::output(&mut shell, b"");
    assert_eq!(code, 2, "{output}{error}");
    assert!(error.contains("no line could be read"), "{error}");
    assert!(output.len() < 4_096, "{} bytes", output.len());
    output
}

/// A gzip file of this many members of 64 MiB.
fn gzip(line: &[u8], members: usize) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(&line.repeat(64 * MIB / line.len())).unwrap();
    encoder.finish().unwrap().repeat(members)
}

/// A Zstandard file of 1 GiB, each block of which is one repeated byte.
fn zstd() -> Vec<u8> {
    // A window of 1 MiB, and no length.
    let mut file = vec![0x28, 0xB5, 0x2F, 0xFD, 0, 0x50];
    const BLOCK_LEN: u32 = 128 * 1024;
    for block in (0..8_192).rev() {
        let header = (BLOCK_LEN << 3) | (1 << 1) | u32::from(block == 0);
        file.extend_from_slice(&header.to_le_bytes()[..3]);
        file.push(b'a');
    }
    file
}

#[test]
fn a_line_of_a_gigabyte_is_skipped_in_bounded_memory() {
    let folder = Folder::create();
    for (name, log) in [("a.gz", gzip(b"a", 16)), ("a.zst", zstd())] {
        assert!(log.len() < 16 * MIB, "{name}: {} bytes", log.len());
        let file = folder.join(name);
        std::fs::write(&file, log).unwrap();
        let output = replay(&file);
        assert!(output.contains(":1: the line is longer than 1048576 bytes"), "{name}: {output}");
        assert!(output.contains("note: 1 of 1 line could not be read"), "{name}: {output}");
    }
}

#[test]
fn millions_of_invalid_lines_are_counted_and_five_are_printed() {
    let folder = Folder::create();
    let file = folder.join("a.gz");
    std::fs::write(&file, gzip(b"{\"x\":1}\n", 1)).unwrap();
    let output = replay(&file);
    assert!(output.contains("8,388,608 of 8,388,608 lines could not be read"), "{output}");
    assert_eq!(output.matches("no time found").count(), 5, "{output}");
}
