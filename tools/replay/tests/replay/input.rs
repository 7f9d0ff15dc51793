//! Files as blocks of whole lines.

use std::fs;
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use flate2::Compression;
use flate2::write::GzEncoder;
use tollgate_replay::input::{Input, MAX_LINE_LEN, Part};

/// A folder of this test, empty.
fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    if folder.exists() {
        fs::remove_dir_all(&folder).unwrap();
    }
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

/// The items of an input: `FILE:LINE text` for each line, and the errors without the folder.
fn yielded(input: Input) -> Vec<String> {
    let mut found = Vec::new();
    for part in input {
        match part {
            Ok(Part::Lines(block)) => found.extend(block.lines().map(|(at, line)| {
                format!("{}:{at} {}", block.beginning.file, String::from_utf8_lossy(line))
            })),
            Ok(Part::TooLong(too_long)) => {
                found.push(format!("{}:{} …", too_long.file, too_long.line))
            }
            Err(mut error) => {
                error.name = error.name.rsplit('/').next().unwrap().into();
                found.push(error.to_string());
            }
        }
    }
    found
}

#[test]
fn files_follow_each_other_whatever_their_compression() {
    let folder = folder("follow");
    let zstd = ruzstd::encoding::compress_to_vec(
        &b"c1\r\nc2"[..],
        ruzstd::encoding::CompressionLevel::Fastest,
    );
    let files: [(&str, &[u8]); 4] = [
        // Names do not matter, as rotated logs have arbitrary names.
        ("a.gz", b"a1\na2\n"),
        ("b", &[gzip(b"b1\nb"), gzip(b"2\n")].concat()),
        ("c.1", &zstd),
        ("empty", b""),
    ];
    for (name, bytes) in files {
        fs::write(folder.join(name), bytes).unwrap();
    }
    let input = Input::open(files.map(|(name, _)| folder.join(name)));
    let progress = input.progress();
    assert_eq!(yielded(input), ["0:1 a1", "0:2 a2", "1:1 b1", "1:2 b2", "2:1 c1", "2:2 c2"]);
    let total = files.iter().map(|(_, bytes)| bytes.len()).sum::<usize>();
    assert_eq!(progress.total, Some(total.try_into().unwrap()));
    assert_eq!(Some(progress.read()), progress.total);
}

#[test]
fn a_file_that_cannot_be_read_is_an_error_in_its_place() {
    let folder = folder("unreadable");
    let text: Vec<u8> = (0..200_000_u32).flat_map(|n| format!("{n:x}\n").into_bytes()).collect();
    let whole = gzip(&text);
    let files: [(&str, &[u8]); 3] =
        [("cut.gz", &whole[..whole.len() / 2]), ("log.xz", b"\xFD7zXZ\0\0"), ("last", b"z\n")];
    for (name, bytes) in files {
        fs::write(folder.join(name), bytes).unwrap();
    }
    let names = ["cut.gz", "missing", "log.xz", "last"];
    let found = yielded(Input::open(names.map(|name| folder.join(name))));
    let lines = found.iter().filter(|found| found.starts_with("0:")).count();
    assert!(lines > 10_000, "{lines}");
    let expected = format!("cannot decompress cut.gz after line {lines}: ");
    assert!(found[lines].starts_with(&expected), "{}", found[lines]);
    assert!(found[lines].contains("gzip -t"), "{}", found[lines]);
    assert!(found[lines + 1].starts_with("cannot open missing: "), "{}", found[lines + 1]);
    assert!(found[lines + 2].contains(" | tollgate replay -"), "{}", found[lines + 2]);
    assert_eq!(found[lines + 3..], ["3:1 z"]);
}

#[test]
fn a_block_has_the_beginning_of_its_file() {
    let text = [b"time,key\n".to_vec(), b"1,a\n".repeat(1_000_000)].concat();
    let mut lines = 0;
    for part in Input::from_reader("a.csv", io::Cursor::new(text)) {
        let Ok(Part::Lines(block)) = part else { panic!("{part:?}") };
        assert!(block.beginning.lines.starts_with(b"time,key\n1,a\n"));
        assert_eq!(&*block.beginning.name, "a.csv");
        assert_eq!(block.first_line, lines + 1);
        lines += u64::try_from(block.lines().count()).unwrap();
    }
    assert_eq!(lines, 1_000_001);
}

#[test]
fn a_line_without_an_end_takes_no_memory() {
    let long = io::repeat(b'x').take(64 * u64::try_from(MAX_LINE_LEN).unwrap());
    let text = (&b"a\n"[..]).chain(long).chain(&b"\nb\n"[..]);
    assert_eq!(yielded(Input::from_reader("-", text)), ["0:1 a", "0:2 …", "0:3 b"]);
}

/// An endless reader that reports when it is dropped.
#[derive(Debug)]
struct Endless(Sender<()>);

impl Read for Endless {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        buffer.fill(b'x');
        Ok(buffer.len())
    }
}

impl Drop for Endless {
    fn drop(&mut self) {
        self.0.send(()).unwrap();
    }
}

#[test]
fn reading_ends_when_the_input_is_dropped() {
    let (sender, dropped): (_, Receiver<()>) = channel();
    drop(Input::from_reader("endless", Endless(sender)));
    dropped.recv().unwrap();
}

/// A reader that blocks forever, like a terminal.
#[derive(Debug)]
struct Waiting(Receiver<u8>);

impl Read for Waiting {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.0.recv() {
            Ok(byte) => {
                buffer[0] = byte;
                Ok(1)
            }
            Err(_) => Ok(0),
        }
    }
}

#[test]
fn dropping_the_input_does_not_wait_for_a_blocked_read() {
    let (keep, waiting) = channel();
    drop(Input::from_reader("-", Waiting(waiting)));
    drop(keep);
}

#[test]
fn available_lines_are_returned_before_a_read_blocks() {
    let (bytes, waiting) = channel();
    let mut input = Input::from_reader("-", Waiting(waiting));
    let send = |text: &[u8]| text.iter().for_each(|text| bytes.send(*text).unwrap());
    // The beginning takes the first 16 KiB. The sender is kept, so that no end is in sight.
    send(&b"0123456789abcde\n".repeat(1_025));
    send(b"one");
    for more in [&b"\ntwo"[..], b"\nthree\n"] {
        let Some(Ok(Part::Lines(block))) = input.next() else { panic!("the input ended") };
        assert_eq!(block.beginning.lines.len(), 16 << 10);
        assert!(block.bytes().ends_with(b"\n"));
        send(more);
    }
    drop(bytes);
    assert_eq!(yielded(input), ["0:1027 two", "0:1028 three"]);
}

#[test]
fn waiting_for_lines_can_be_stopped() {
    let (keep, waiting) = channel();
    let mut input = Input::from_reader("-", Waiting(waiting));
    let stop = Arc::new(AtomicBool::new(false));
    let setter = stop.clone();
    let thread = std::thread::spawn(move || setter.store(true, Ordering::Relaxed));
    assert!(input.next_unless(&stop).is_none());
    thread.join().unwrap();
    drop(keep);

    let mut input = Input::from_reader("a.log", io::Cursor::new(b"a\n".repeat(20 * MAX_LINE_LEN)));
    assert!(matches!(input.next(), Some(Ok(Part::Lines(_)))));
    assert!(input.next_unless(&stop).is_none() && input.next_unless(&stop).is_none());
}

#[test]
fn a_reader_that_panics_is_an_error() {
    #[derive(Debug)]
    struct Panics;
    impl Read for Panics {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            panic!("on purpose")
        }
    }
    let found = yielded(Input::from_reader("a.log", Panics));
    assert_eq!(found.len(), 1);
    assert!(found[0].contains("ended unexpectedly"), "{found:?}");
}
