//! Parsing of commands, wherever the bytes are split: nothing is copied or parsed twice.

use super::failure::ProtocolError;
use super::inline;

/// The most arguments of a command: 32 checks with every keyword.
pub(super) const MAX_ARGUMENTS: usize = 1_024;
/// The longest inline command in bytes, as in Redis.
const MAX_LINE_LEN: usize = 64 * 1024;
/// The most bytes of all arguments of a command, in multiples of `limits.body`.
const BODIES: usize = 16;

/// Bounds on commands.
#[derive(Clone, Copy, Debug)]
pub(super) struct FrameBounds {
    /// The most arguments.
    pub(super) arguments: usize,
    /// The most bytes of one.
    pub(super) argument: usize,
}

impl FrameBounds {
    pub(super) const fn new(body: usize) -> Self {
        FrameBounds { arguments: MAX_ARGUMENTS, argument: body }
    }

    /// The bounds before authentication, as in Redis.
    pub(super) const fn unauthenticated() -> Self {
        FrameBounds { arguments: 10, argument: 16 * 1024 }
    }

    /// The most bytes of all arguments of a command.
    const fn command(&self) -> usize {
        self.argument.saturating_mul(BODIES)
    }
}

/// The position of an argument.
#[derive(Clone, Copy, Debug, Default)]
struct Span {
    start: usize,
    end: usize,
}

/// The arguments of a command, its name first.
#[derive(Clone, Copy, Debug)]
pub(super) struct Args<'a> {
    bytes: &'a [u8],
    spans: &'a [Span],
}

impl<'a> Args<'a> {
    pub(super) fn len(self) -> usize {
        self.spans.len()
    }

    #[inline]
    pub(super) fn get(self, index: usize) -> Option<&'a [u8]> {
        self.spans.get(index).map(|span| &self.bytes[span.start..span.end])
    }

    /// The arguments from an index on, if there are any.
    pub(super) fn from(self, index: usize) -> impl Iterator<Item = &'a [u8]> {
        let spans = self.spans.get(index..).unwrap_or_default();
        spans.iter().map(move |span| &self.bytes[span.start..span.end])
    }

    /// The bytes of all arguments together.
    pub(super) fn bytes(self) -> usize {
        self.spans.iter().map(|span| span.end - span.start).sum()
    }
}

/// Copied arguments of a queued command.
#[derive(Debug, Default)]
pub(super) struct OwnedArgs {
    bytes: Vec<u8>,
    spans: Vec<Span>,
}

impl OwnedArgs {
    pub(super) fn new(args: Args<'_>) -> Self {
        let mut owned = OwnedArgs::default();
        for arg in args.from(0) {
            let start = owned.bytes.len();
            owned.bytes.extend_from_slice(arg);
            owned.spans.push(Span { start, end: owned.bytes.len() });
        }
        owned
    }

    pub(super) fn as_args(&self) -> Args<'_> {
        Args { bytes: &self.bytes, spans: &self.spans }
    }
}

/// The result of parsing the bytes so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Frame {
    /// A command of this length in bytes.
    Command(usize),
    /// Bytes without a command, of this length.
    Empty(usize),
    /// The beginning of a command.
    Incomplete,
}

/// The state of the parser.
#[derive(Clone, Copy, Debug, Default)]
enum Stage {
    #[default]
    Begin,
    /// The length of an argument is next; this many arguments are missing.
    Length(usize),
    /// The bytes of an argument are next.
    Argument { left: usize, len: usize },
    /// An inline command.
    Inline,
}

/// Parses commands incrementally.
#[derive(Debug, Default)]
pub(super) struct FrameParser {
    stage: Stage,
    /// The position of the next unparsed byte, from the beginning of the command.
    at: usize,
    /// The length of all arguments so far.
    total: usize,
    spans: Vec<Span>,
    /// The arguments of an inline command, without quotes.
    unquoted: Vec<u8>,
    is_inline: bool,
}

impl FrameParser {
    /// Continues to parse. `bytes` begins with the first incomplete command.
    pub(super) fn next(
        &mut self,
        bytes: &[u8],
        bounds: &FrameBounds,
    ) -> Result<Frame, ProtocolError> {
        loop {
            match self.stage {
                Stage::Begin => match bytes.first() {
                    None => return Ok(Frame::Incomplete),
                    Some(b'*') => {
                        let Some((count, end)) = Number::Count.parse(bytes, 1)? else {
                            return Ok(Frame::Incomplete);
                        };
                        let count = argument_count(count, bounds)?;
                        if count == 0 {
                            return Ok(Frame::Empty(end));
                        }
                        (self.at, self.total, self.is_inline) = (end, 0, false);
                        self.spans.clear();
                        self.stage = Stage::Length(count);
                    }
                    Some(_) => (self.at, self.stage) = (0, Stage::Inline),
                },
                Stage::Length(left) => {
                    let left = self.short_arguments(bytes, bounds, left);
                    if left == 0 {
                        self.stage = Stage::Begin;
                        return Ok(Frame::Command(self.at));
                    }
                    match self.length(bytes, bounds)? {
                        None => {
                            self.stage = Stage::Length(left);
                            return Ok(Frame::Incomplete);
                        }
                        Some(len) => self.stage = Stage::Argument { left, len },
                    }
                }
                Stage::Argument { left, len } => {
                    match bytes.get(self.at + len..self.at + len + 2) {
                        None => return Ok(Frame::Incomplete),
                        Some(b"\r\n") => {}
                        Some(_) => {
                            return Err(ProtocolError::new("expected the end of an argument"));
                        }
                    }
                    self.spans.push(Span { start: self.at, end: self.at + len });
                    self.at += len + 2;
                    if left == 1 {
                        self.stage = Stage::Begin;
                        return Ok(Frame::Command(self.at));
                    }
                    self.stage = Stage::Length(left - 1);
                }
                Stage::Inline => return self.line(bytes),
            }
        }
    }

    /// The arguments of the last command.
    pub(super) fn args<'a>(&'a self, bytes: &'a [u8]) -> Args<'a> {
        let bytes = if self.is_inline { &self.unquoted } else { bytes };
        Args { bytes, spans: &self.spans }
    }

    /// Frees memory of a large command.
    pub(super) fn shrink(&mut self) {
        const USUAL: usize = 16;
        if matches!(self.stage, Stage::Begin) {
            self.spans.clear();
            self.spans.shrink_to(USUAL);
            self.unquoted = Vec::new();
        }
    }

    /// Parses complete short arguments, the usual case, up to one that is not. Returns how many are
    /// left. The general path takes three times the instructions.
    #[inline]
    fn short_arguments(&mut self, bytes: &[u8], bounds: &FrameBounds, mut left: usize) -> usize {
        let max = bounds.command();
        while left > 0 {
            let rest = &bytes[self.at..];
            let Some((len, start)) = short_length(rest) else { break };
            let end = start + len;
            let is_whole = rest.get(end..end + 2) == Some(b"\r\n");
            if !is_whole || len > bounds.argument || self.total + len > max {
                break;
            }
            self.spans.push(Span { start: self.at + start, end: self.at + end });
            self.at += end + 2;
            self.total += len;
            left -= 1;
        }
        left
    }

    fn length(
        &mut self,
        bytes: &[u8],
        bounds: &FrameBounds,
    ) -> Result<Option<usize>, ProtocolError> {
        match bytes.get(self.at) {
            None => return Ok(None),
            Some(b'$') => {}
            Some(other) => {
                return Err(ProtocolError::new(format!(
                    "expected '$', got '{}'",
                    other.escape_ascii()
                )));
            }
        }
        let Some((len, end)) = Number::Length.parse(bytes, self.at + 1)? else {
            return Ok(None);
        };
        let len = usize::try_from(len).map_err(|_| Number::Length.invalid())?;
        if len > bounds.argument {
            let max = bounds.argument;
            let detail = format!("invalid bulk length {len}; the maximum is {max}");
            return Err(ProtocolError::new(detail));
        }
        self.total += len;
        if self.total > bounds.command() {
            let max = bounds.command();
            let detail = format!("too big a command; the maximum is {max} bytes");
            return Err(ProtocolError::new(detail));
        }
        self.at = end;
        Ok(Some(len))
    }

    /// Parses an inline command.
    fn line(&mut self, bytes: &[u8]) -> Result<Frame, ProtocolError> {
        let new = &bytes[self.at..];
        let Some(len) = new.iter().position(|byte| *byte == b'\n') else {
            // These bytes are not searched again.
            self.at = bytes.len();
            if bytes.len() > MAX_LINE_LEN {
                return Err(ProtocolError::new("too big inline request"));
            }
            return Ok(Frame::Incomplete);
        };
        let end = self.at + len;
        if end > MAX_LINE_LEN {
            return Err(ProtocolError::new("too big inline request"));
        }
        let line = &bytes[..end];
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        (self.stage, self.is_inline) = (Stage::Begin, true);
        self.spans.clear();
        self.unquoted.clear();
        let (unquoted, spans) = (&mut self.unquoted, &mut self.spans);
        inline::split(line, unquoted, |start, end| spans.push(Span { start, end }))
            .map_err(|inline::Unbalanced| ProtocolError::new("unbalanced quotes in request"))?;
        if spans.len() > MAX_ARGUMENTS {
            return Err(ProtocolError::new("too many arguments in request"));
        }
        Ok(if spans.is_empty() { Frame::Empty(end + 1) } else { Frame::Command(end + 1) })
    }
}

/// A length of one or two digits, and the position after it.
#[inline]
fn short_length(rest: &[u8]) -> Option<(usize, usize)> {
    match rest {
        [b'$', one @ b'0'..=b'9', b'\r', b'\n', ..] => Some((usize::from(one - b'0'), 4)),
        [b'$', ten @ b'0'..=b'9', one @ b'0'..=b'9', b'\r', b'\n', ..] => {
            Some((usize::from(ten - b'0') * 10 + usize::from(one - b'0'), 5))
        }
        _ => None,
    }
}

/// The announced number of arguments; a negative number is an empty command, as in Redis.
fn argument_count(count: i64, bounds: &FrameBounds) -> Result<usize, ProtocolError> {
    match usize::try_from(count) {
        Ok(count) if count <= bounds.arguments => Ok(count),
        _ if count < 0 => Ok(0),
        _ => {
            let max = bounds.arguments;
            let detail = format!("invalid multibulk length {count}; the maximum is {max}");
            Err(ProtocolError::new(detail))
        }
    }
}

/// The most bytes of the line that contains a number.
const MAX_NUMBER_LEN: usize = 32;

/// The meaning of a number.
#[derive(Clone, Copy, Debug)]
enum Number {
    /// The number of arguments that follow.
    Count,
    /// The length of an argument.
    Length,
}

impl Number {
    /// The error of Redis for an invalid number. It does not quote the number: how much of it has
    /// arrived depends on where the bytes were split.
    fn invalid(self) -> ProtocolError {
        ProtocolError::new(match self {
            Number::Count => "invalid multibulk length",
            Number::Length => "invalid bulk length",
        })
    }

    fn too_big(self) -> ProtocolError {
        ProtocolError::new(match self {
            Number::Count => "too big mbulk count string",
            Number::Length => "too big bulk count string",
        })
    }

    /// Parses the line that begins at `start`. Returns the number and the start of the next line,
    /// or nothing if the line is incomplete.
    #[inline]
    fn parse(self, bytes: &[u8], start: usize) -> Result<Option<(i64, usize)>, ProtocolError> {
        let line = &bytes[start..];
        let mut value = 0_i64;
        // Nearly all numbers have one or two digits, which need no more than this.
        for (len, byte) in line.iter().enumerate() {
            match byte {
                b'0'..=b'9' if len < 18 => value = value * 10 + i64::from(byte - b'0'),
                b'\r' if len > 0 => return self.end(line, start, len, value),
                _ => return self.parse_unusual(line, start),
            }
        }
        Ok(None)
    }

    /// Returns `value` if a line feed follows the carriage return after `len` bytes.
    fn end(
        self,
        line: &[u8],
        start: usize,
        len: usize,
        value: i64,
    ) -> Result<Option<(i64, usize)>, ProtocolError> {
        match line.get(len + 1) {
            None => Ok(None),
            Some(b'\n') => Ok(Some((value, start + len + 2))),
            Some(_) => Err(self.invalid()),
        }
    }

    /// Parses a negative or very large number.
    #[cold]
    fn parse_unusual(
        self,
        line: &[u8],
        start: usize,
    ) -> Result<Option<(i64, usize)>, ProtocolError> {
        let head = &line[..line.len().min(MAX_NUMBER_LEN + 1)];
        let len = head.iter().position(|byte| *byte == b'\r').unwrap_or(head.len());
        let digits = &head[..len];
        let is_valid =
            |(at, byte): (usize, &u8)| byte.is_ascii_digit() || (at == 0 && *byte == b'-');
        if !digits.iter().take(MAX_NUMBER_LEN).enumerate().all(is_valid) {
            return Err(self.invalid());
        }
        if len >= MAX_NUMBER_LEN {
            return Err(self.too_big());
        }
        if len == line.len() {
            return Ok(None);
        }
        match std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok()) {
            Some(value) => self.end(line, start, len, value),
            None => Err(self.invalid()),
        }
    }
}
