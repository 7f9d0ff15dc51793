//! Reads arbitrary bytes as a log of every format: each line is a record or an error, and printable
//! text contains no control characters. As a file, compressed or not, they have whole lines.
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
        fields.want(name).expect("the field is valid");
    }
    for format in FORMATS {
        let Ok(mut reader) = Reader::open(format, bytes, &fields) else { continue };
        for line in bytes.split(|byte| *byte == b'\n') {
            if let Ok(Some(line)) = reader.read(line) {
                let texts = [line.address, line.target, line.key, line.header("x-api-key")];
                assert!(texts.into_iter().flatten().all(|text| text.len() <= bytes.len()));
            }
            assert!(!printable(line).contains(char::is_control));
        }
    }
    for part in Input::from_reader("fuzz", Cursor::new(bytes.to_vec())) {
        let Ok(Part::Lines(block)) = part else { break };
        assert!(block.lines().all(|(_, line)| !line.contains(&b'\n')));
    }
});
