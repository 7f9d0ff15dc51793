//! Decompression of streams, detected by their content rather than by their name.

use std::io::{self, BufRead, BufReader, Cursor, Read};

use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use crate::convert::to_u64;

const GZIP: &[u8] = &[0x1F, 0x8B];
const ZSTD: &[u8] = &[0x28, 0xB5, 0x2F, 0xFD];
/// Parallel compressors start with such a frame; its lowest four bits are arbitrary.
const ZSTD_SKIPPABLE: &[u8] = &[0x2A, 0x4D, 0x18];
/// Unsupported formats, and the program that decompresses them.
const OTHERS: [(&[u8], &str); 4] = [
    (b"BZh", "bzip2"),
    (&[0xFD, b'7', b'z', b'X', b'Z'], "xz"),
    (&[0x04, 0x22, 0x4D, 0x18], "lz4"),
    (b"PK\x03\x04", "unzip"),
];
const MAX_MAGIC_LEN: usize = 5;

const READ_BYTES: usize = 256 << 10;
/// The window size that `zstd -d` accepts by default.
const ZSTD_WINDOW: u64 = 128 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compression {
    None,
    Gzip,
    Zstd,
    /// Unsupported; this program decompresses it.
    Other(&'static str),
}

impl Compression {
    fn detect(beginning: &[u8]) -> Self {
        if beginning.starts_with(GZIP) {
            return Compression::Gzip;
        }
        let is_skippable = beginning.get(1..4) == Some(ZSTD_SKIPPABLE)
            && beginning.first().is_some_and(|byte| byte >> 4 == 5);
        if beginning.starts_with(ZSTD) || is_skippable {
            return Compression::Zstd;
        }
        let other = OTHERS.iter().find(|(magic, _)| beginning.starts_with(magic));
        other.map_or(Compression::None, |(_, program)| Compression::Other(program))
    }
}

/// Opens a stream; returns its compression and a reader of the decompressed bytes.
pub(super) fn open<'r>(mut from: impl Read + 'r) -> io::Result<(Compression, Box<dyn Read + 'r>)> {
    let mut beginning = Vec::with_capacity(MAX_MAGIC_LEN);
    (&mut from).take(to_u64(MAX_MAGIC_LEN)).read_to_end(&mut beginning)?;
    let compression = Compression::detect(&beginning);
    let whole = Cursor::new(beginning).chain(from);
    let buffered = |whole| BufReader::with_capacity(READ_BYTES, whole);
    let reader: Box<dyn Read> = match compression {
        Compression::None | Compression::Other(_) => Box::new(whole),
        Compression::Gzip => Box::new(MultiGzDecoder::new(buffered(whole))),
        Compression::Zstd => Box::new(Frames::new(buffered(whole))),
    };
    Ok((compression, reader))
}

/// Consecutive Zstandard frames.
struct Frames<R> {
    from: R,
    decoder: FrameDecoder,
    in_frame: bool,
}

impl<R: BufRead> Frames<R> {
    fn new(from: R) -> Self {
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(ZSTD_WINDOW);
        Frames { from, decoder, in_frame: false }
    }

    /// Starts the next frame, if there is one.
    fn begin(&mut self) -> io::Result<bool> {
        if self.from.fill_buf()?.is_empty() {
            return Ok(false);
        }
        match self.decoder.reset(&mut self.from) {
            Ok(()) => self.in_frame = true,
            Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                length,
                ..
            })) => {
                let mut skipped = (&mut self.from).take(u64::from(length));
                let skipped = io::copy(&mut skipped, &mut io::sink())?;
                if skipped < u64::from(length) {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
            }
            Err(error) => return Err(io::Error::other(error)),
        }
        Ok(true)
    }

    /// Ends a frame after its last byte.
    fn end(&mut self) -> io::Result<()> {
        self.in_frame = false;
        match (self.decoder.get_checksum_from_data(), self.decoder.get_calculated_checksum()) {
            (Some(stored), Some(computed)) if stored != computed => {
                Err(io::Error::other("checksum mismatch"))
            }
            _ => Ok(()),
        }
    }
}

impl<R: BufRead> Read for Frames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if !self.in_frame {
                if !self.begin()? {
                    return Ok(0);
                }
                continue;
            }
            while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
                let one = BlockDecodingStrategy::UptoBlocks(1);
                self.decoder.decode_blocks(&mut self.from, one).map_err(io::Error::other)?;
            }
            let read = self.decoder.read(buffer)?;
            if read > 0 || buffer.is_empty() {
                return Ok(read);
            }
            self.end()?;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression as Level;
    use flate2::write::GzEncoder;
    use proptest::prelude::*;
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};

    use super::*;

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Level::fast());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    fn zstd(text: &[u8]) -> Vec<u8> {
        compress_to_vec(text, CompressionLevel::Fastest)
    }

    const SKIPPABLE: &[u8] = b"\x5A\x2A\x4D\x18\x03\x00\x00\x00abc";

    /// The decompressed bytes, and the error that ended them.
    fn read(bytes: &[u8]) -> (Compression, Vec<u8>, Option<io::Error>) {
        let (compression, mut reader) = open(bytes).unwrap();
        let mut text = Vec::new();
        let error = reader.read_to_end(&mut text).err();
        (compression, text, error)
    }

    #[test]
    fn compression_is_detected_by_the_first_bytes() {
        let check = |bytes: &[u8], compression: Compression, expected: &[u8]| {
            let (found, text, error) = read(bytes);
            assert_eq!(
                (found, &text[..], error.map(|error| error.to_string())),
                (compression, expected, None)
            );
        };
        check(b"", Compression::None, b"");
        check(b"a", Compression::None, b"a");
        check(b"plain text", Compression::None, b"plain text");
        check(&gzip(b"text"), Compression::Gzip, b"text");
        check(&zstd(b"text"), Compression::Zstd, b"text");
        check(b"BZh91AY", Compression::Other("bzip2"), b"BZh91AY");
    }

    #[test]
    fn concatenated_streams_are_one() {
        let check = |streams: &[&[u8]], expected: &[u8]| {
            let (_, text, error) = read(&streams.concat());
            assert!(error.is_none(), "{error:?}");
            assert_eq!(text, expected);
        };
        check(&[&gzip(b"a"), &gzip(b""), &gzip(b"b\n")], b"ab\n");
        check(&[&zstd(b"a"), &zstd(b""), SKIPPABLE, &zstd(b"b\n")], b"ab\n");
        check(&[SKIPPABLE, &zstd(b"a")], b"a");
        check(&[SKIPPABLE], b"");
    }

    #[test]
    fn a_damaged_stream_returns_what_precedes_the_damage() {
        let text: Vec<u8> =
            (0..400_000_u32).flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
        for whole in [gzip(&text), zstd(&text)] {
            let (_, found, error) = read(&whole[..whole.len() / 2]);
            assert!(error.is_some());
            assert!(found.len() > 100_000 && text.starts_with(&found), "{}", found.len());

            let (_, found, error) = read(&[&whole[..], &whole[..7]].concat());
            assert!(error.is_some());
            assert_eq!(found.len(), text.len());

            let mut damaged = whole.clone();
            let last = damaged.len() - 2;
            damaged[last] ^= 1;
            let (_, found, error) = read(&damaged);
            assert!(error.is_some(), "the checksum is not verified");
            assert!(found.len() <= text.len());
        }
    }

    proptest! {
        #[test]
        fn garbage_never_panics(
            magic in prop::sample::select(vec![GZIP, ZSTD, SKIPPABLE, b"\x1F\x8B\x08\x00"]),
            garbage in prop::collection::vec(any::<u8>(), 0..300),
        ) {
            read(&[magic, &garbage[..]].concat());
        }

        #[test]
        fn a_changed_byte_never_panics(at in any::<prop::sample::Index>(), byte: u8) {
            let text = b"192.0.2.1 - - [10/Oct/2000:13:55:36 -0700] ".repeat(50);
            for mut whole in [gzip(&text), zstd(&text)] {
                let at = at.index(whole.len());
                whole[at] = byte;
                read(&whole);
            }
        }
    }
}
