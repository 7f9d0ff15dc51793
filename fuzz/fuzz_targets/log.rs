//! Any bytes are lines of a log or say what is wrong with them, in every format; what is printable of them
//! is fit for a terminal; and they are a file of whole lines, compressed or not.
//!
//! `cargo xtask fuzz log`
#![no_main]

use std::io::Cursor;

use libfuzzer_sys::fuzz_target;
use tollgate_replay::input::{Input, Part};
use tollgate_replay::log::{Fields, Format, Reader, printable};

const FORMATS: [Option<Format>; 5] =
    [None, Some(Format::Common), Some(Format::Combined), Some(Format::Json), Some(Format::Csv)];

fuzz_target!(|bytes: &[u8]| {
    let mut fields = Fields::default();
    for name in ["verb", "max_wait", "header.x-api-key"] {
        fields.want(name).expect("a name of ours");
    }
    for format in FORMATS {
        let Ok(mut reader) = Reader::open(format, bytes, &fields) else { continue };
        for line in bytes.split(|it| *it == b'\n') {
            if let Ok(Some(line)) = reader.read(line) {
                let texts = [line.address, line.target, line.key, line.header("x-api-key")];
                let texts = texts.into_iter().flatten().map(<[u8]>::len);
                assert!(texts.max().unwrap_or_default() <= bytes.len());
            }
            assert!(!printable(line).contains(char::is_control));
        }
    }
    for part in Input::from_reader("fuzz", Cursor::new(bytes.to_vec())) {
        let Ok(Part::Lines(block)) = part else { break };
        assert!(block.lines().all(|(_, line)| !line.contains(&b'\n')));
    }
});
