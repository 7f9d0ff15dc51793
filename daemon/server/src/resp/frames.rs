//! Commands out of bytes, wherever those are split: nothing is copied, and nothing is read twice.

use super::inline;
use super::number::{Number, number};

/// The most arguments of a command: 32 checks with all that each may say.
pub(super) const MAX_ARGUMENTS: usize = 1_024;
/// The most bytes of a line: of an inline command, as Redis has it.
const MAX_LINE_LEN: usize = 64 * 1024;
/// What all arguments of a command may have together, in bodies.
const BODIES: usize = 16;

/// What peers are held to.
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

    /// Of peers that have not shown a token yet, as Redis has it.
    pub(super) const fn of_strangers() -> Self {
        FrameBounds { arguments: 10, argument: 16 * 1024 }
    }
}

/// Where an argument is.
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
        let span = self.spans.get(index)?;
        self.bytes.get(span.start..span.end)
    }

    /// All from one on.
    pub(super) fn from(self, index: usize) -> impl Iterator<Item = &'a [u8]> {
        let spans = self.spans.get(index..).unwrap_or_default();
        spans.iter().filter_map(move |span| self.bytes.get(span.start..span.end))
    }

    /// The bytes of all arguments together.
    pub(super) fn bytes(self) -> usize {
        self.spans.iter().map(|span| span.end - span.start).sum()
    }
}

/// Arguments kept for later, those of a transaction.
#[derive(Debug, Default)]
pub(super) struct Kept {
    bytes: Vec<u8>,
    spans: Vec<Span>,
}

impl Kept {
    pub(super) fn of(args: Args<'_>) -> Self {
        let mut kept = Kept::default();
        for arg in args.from(0) {
            let start = kept.bytes.len();
            kept.bytes.extend_from_slice(arg);
            kept.spans.push(Span { start, end: kept.bytes.len() });
        }
        kept
    }

    pub(super) fn args(&self) -> Args<'_> {
        Args { bytes: &self.bytes, spans: &self.spans }
    }
}

/// What the bytes so far are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Parsed {
    /// A command, with so many bytes of it.
    Command(usize),
    /// Nothing to answer, of so many bytes.
    Nothing(usize),
    /// The beginning of a command.
    Half,
}

/// Bytes that are no command; the connection cannot go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ProtocolError(pub(super) String);

pub(super) fn broken(why: impl Into<String>) -> ProtocolError {
    ProtocolError(why.into())
}

/// How far the next command has been read.
#[derive(Clone, Copy, Debug, Default)]
enum Stage {
    #[default]
    Begin,
    /// So many arguments are still to come, and the length of the first is next.
    Length(usize),
    /// Of these arguments the bytes of the first are next.
    Argument { left: usize, len: usize },
    /// A line without a frame.
    Inline,
}

/// Reads commands. Between two calls it remembers how far it came.
#[derive(Debug, Default)]
pub(super) struct Frames {
    stage: Stage,
    /// Where it goes on, from the beginning of the command.
    at: usize,
    /// The bytes of all arguments so far.
    total: usize,
    spans: Vec<Span>,
    /// What an inline command's arguments are, without their quotes.
    unquoted: Vec<u8>,
    is_inline: bool,
}

impl Frames {
    /// Reads on. `bytes` begin where the command does that was not whole at the last call.
    pub(super) fn next(
        &mut self,
        bytes: &[u8],
        bounds: &FrameBounds,
    ) -> Result<Parsed, ProtocolError> {
        loop {
            match self.stage {
                Stage::Begin => match bytes.first() {
                    None => return Ok(Parsed::Half),
                    Some(b'*') => {
                        let Some((count, end)) = number(bytes, 1, Number::Count)? else {
                            return Ok(Parsed::Half);
                        };
                        let count = count_of(count, bounds)?;
                        if count == 0 {
                            return Ok(Parsed::Nothing(end));
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
                        return Ok(Parsed::Command(self.at));
                    }
                    match self.length(bytes, bounds)? {
                        None => {
                            self.stage = Stage::Length(left);
                            return Ok(Parsed::Half);
                        }
                        Some(len) => self.stage = Stage::Argument { left, len },
                    }
                }
                Stage::Argument { left, len } => {
                    match bytes.get(self.at + len..self.at + len + 2) {
                        None => return Ok(Parsed::Half),
                        Some(b"\r\n") => {}
                        Some(_) => return Err(broken("expected the end of an argument")),
                    }
                    self.spans.push(Span { start: self.at, end: self.at + len });
                    self.at += len + 2;
                    if left == 1 {
                        self.stage = Stage::Begin;
                        return Ok(Parsed::Command(self.at));
                    }
                    self.stage = Stage::Length(left - 1);
                }
                Stage::Inline => return self.line(bytes),
            }
        }
    }

    /// The arguments of the command that was just read.
    pub(super) fn args<'a>(&'a self, bytes: &'a [u8]) -> Args<'a> {
        let bytes = if self.is_inline { &self.unquoted } else { bytes };
        Args { bytes, spans: &self.spans }
    }

    /// Gives memory back that a large command took.
    pub(super) fn shrink(&mut self) {
        const USUAL: usize = 16;
        if matches!(self.stage, Stage::Begin) {
            self.spans.clear();
            self.spans.shrink_to(USUAL);
            self.unquoted = Vec::new();
        }
    }

    /// Reads arguments that are whole and short, which nearly all are, up to one that is not; how
    /// many are left. The way of the others takes thrice the instructions.
    #[inline]
    fn short_arguments(&mut self, bytes: &[u8], bounds: &FrameBounds, mut left: usize) -> usize {
        let most = bounds.argument.saturating_mul(BODIES);
        while left > 0 {
            let rest = bytes.get(self.at..).unwrap_or_default();
            let Some((len, start)) = short_length(rest) else { break };
            let end = start + len;
            let is_whole = rest.get(end..end + 2) == Some(b"\r\n");
            if !is_whole || len > bounds.argument || self.total + len > most {
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
                return Err(broken(format!("expected '$', got '{}'", other.escape_ascii())));
            }
        }
        let Some((len, end)) = number(bytes, self.at + 1, Number::Length)? else {
            return Ok(None);
        };
        let len = usize::try_from(len).map_err(|_| Number::Length.invalid())?;
        if len > bounds.argument {
            let most = bounds.argument;
            return Err(broken(format!("invalid bulk length {len}; at most {most} are taken")));
        }
        self.total += len;
        if self.total > bounds.argument.saturating_mul(BODIES) {
            let most = bounds.argument.saturating_mul(BODIES);
            return Err(broken(format!("too big a command; at most {most} bytes are taken")));
        }
        self.at = end;
        Ok(Some(len))
    }

    /// Reads a line that is a command without a frame.
    fn line(&mut self, bytes: &[u8]) -> Result<Parsed, ProtocolError> {
        let rest = bytes.get(self.at..).unwrap_or_default();
        let Some(end) = rest.iter().position(|x| *x == b'\n').map(|x| self.at + x) else {
            // What was looked at is not looked at again.
            self.at = bytes.len();
            if bytes.len() > MAX_LINE_LEN {
                return Err(broken("too big inline request"));
            }
            return Ok(Parsed::Half);
        };
        if end > MAX_LINE_LEN {
            return Err(broken("too big inline request"));
        }
        let line = bytes.get(..end).unwrap_or_default();
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        (self.stage, self.is_inline) = (Stage::Begin, true);
        self.spans.clear();
        self.unquoted.clear();
        let (unquoted, spans) = (&mut self.unquoted, &mut self.spans);
        let read = inline::words(line, unquoted, |start, end| spans.push(Span { start, end }));
        if read.is_err() {
            return Err(broken("unbalanced quotes in request"));
        }
        if spans.len() > MAX_ARGUMENTS {
            return Err(broken("too many arguments in request"));
        }
        Ok(if spans.is_empty() { Parsed::Nothing(end + 1) } else { Parsed::Command(end + 1) })
    }
}

/// A length of a digit or two, and where what it is of begins.
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

/// How many arguments are announced; less than one is nothing to answer, as in Redis.
fn count_of(count: i64, bounds: &FrameBounds) -> Result<usize, ProtocolError> {
    let count = usize::try_from(count).unwrap_or(0);
    if count > bounds.arguments {
        let most = bounds.arguments;
        return Err(broken(format!("invalid multibulk length {count}; at most {most} are taken")));
    }
    Ok(count)
}
