//! The blocks of a log, with the counts of their lines.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::error::ReplayError;
use crate::input::{Block, FileHead, Input, InputError, MAX_LINE_LEN, Part, TooLong};
use crate::log::{Fields, Format, LineError, Reader, printable};
use crate::read::{Counts, MAX_SAMPLES};
use crate::report::{InvalidLine, Source};

/// A log and the format of its lines.
#[derive(Debug)]
pub struct Log {
    input: Input,
    format: Option<Format>,
    fields: Fields,
    /// The first block, if it was read for the detection of operations.
    first: Option<Part>,
}

impl Log {
    /// The log in `input`. Without a format, the format of each file is detected; `fields` maps the names
    /// of fields.
    #[must_use]
    pub fn new(input: Input, format: Option<Format>, fields: Fields) -> Self {
        Log { input, format, fields, first: None }
    }

    /// Whether the first lines, or the header, contain operations.
    ///
    /// # Errors
    /// The first file cannot be read, or its format is unknown.
    pub fn has_operations(&mut self, stop: &AtomicBool) -> Result<bool, ReplayError> {
        self.first = self.input.next_unless(stop).transpose().map_err(ReplayError::Input)?;
        let Some(Part::Lines(block)) = &self.first else { return Ok(false) };
        let beginning = block.beginning();
        let mut reader = Reader::open(self.format, &beginning.lines, &self.fields)
            .map_err(|error| ReplayError::UnknownFormat(beginning.name.to_string(), error))?;
        Ok(block.lines().take(DETECTION_LINES).any(
            |(_, line)| matches!(reader.read(line), Ok(Some(line)) if line.field("verb").is_some()),
        ))
    }

    fn next(&mut self, stop: &AtomicBool) -> Option<Result<Part, InputError>> {
        self.first.take().map(Ok).or_else(|| self.input.next_unless(stop))
    }
}

/// How many lines are searched for operations.
const DETECTION_LINES: usize = 100;

/// The progress of a replay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Lines or requests so far.
    pub lines: u64,
    /// Bytes of the files on disk so far.
    pub bytes: u64,
    /// The size of the files on disk, if it is known.
    pub total: Option<u64>,
}

/// The blocks of a log, and the counts of its lines so far.
#[derive(Debug)]
pub(crate) struct LogLines {
    log: Log,
    strict: bool,
    /// The start of the current file, and its reader.
    reader: Option<(Arc<FileHead>, Reader)>,
    /// The number of lines of all files, including empty ones.
    pub(crate) rows: u64,
    /// Whether reading has ended, possibly before the end of the log.
    is_over: bool,
    pub(crate) source: Source,
}

impl LogLines {
    pub(crate) fn new(log: Log, strict: bool) -> Self {
        let source = Source::default();
        LogLines { log, strict, reader: None, rows: 0, is_over: false, source }
    }

    /// The next blocks with their readers; empty at the end.
    pub(crate) fn blocks(
        &mut self,
        max: usize,
        stop: &AtomicBool,
    ) -> Result<Vec<(Block, Reader)>, ReplayError> {
        let mut blocks = Vec::new();
        while blocks.len() < max && !self.is_over {
            match self.log.next(stop) {
                None => break,
                Some(Err(error)) if self.rows == 0 && blocks.is_empty() => {
                    return Err(ReplayError::Input(error));
                }
                // The part before the error is still reported.
                Some(Err(error)) => {
                    self.source.failed = Some(error.to_string());
                    self.is_over = true;
                }
                Some(Ok(Part::TooLong(too_long))) => self.too_long(&too_long)?,
                Some(Ok(Part::Lines(block))) => {
                    let reader = self.reader(block.beginning())?;
                    blocks.push((block, reader));
                }
            }
        }
        Ok(blocks)
    }

    fn reader(&mut self, head: &Arc<FileHead>) -> Result<Reader, ReplayError> {
        match &self.reader {
            Some((beginning, reader)) if beginning.file == head.file => Ok(reader.clone()),
            _ => {
                let reader = Reader::open(self.log.format, &head.lines, &self.log.fields)
                    .map_err(|error| ReplayError::UnknownFormat(head.name.to_string(), error))?;
                self.source.names.push(head.name.to_string());
                self.source.format.get_or_insert(reader.format().name());
                self.reader = Some((head.clone(), reader.clone()));
                Ok(reader)
            }
        }
    }

    /// Counts the lines of a block.
    pub(crate) fn count(&mut self, block: &Block, counts: Counts) -> Result<(), ReplayError> {
        self.rows += counts.rows;
        self.source.lines += counts.lines;
        self.source.invalid += counts.invalid;
        self.source.keyless += counts.keyless;
        self.source.unruled += counts.unruled;
        for (row, text, reason) in counts.samples {
            let name = block.beginning().name.to_string();
            self.sample(InvalidLine { name, line: block.first_line() + row - 1, text, reason })?;
        }
        Ok(())
    }

    fn too_long(&mut self, line: &TooLong) -> Result<(), ReplayError> {
        self.rows += 1;
        self.source.lines += 1;
        self.source.invalid += 1;
        let name = line.name.to_string();
        let reason = LineError::TooLong { max: MAX_LINE_LEN }.to_string();
        self.sample(InvalidLine { name, line: line.line, text: printable(&line.beginning), reason })
    }

    fn sample(&mut self, sample: InvalidLine) -> Result<(), ReplayError> {
        if self.strict {
            return Err(ReplayError::Strict(sample));
        }
        if self.source.invalid_samples.len() < MAX_SAMPLES {
            self.source.invalid_samples.push(sample);
        }
        Ok(())
    }

    pub(crate) fn progress(&self) -> Progress {
        let input = self.log.input.progress();
        Progress { lines: self.source.lines, bytes: input.read(), total: input.total() }
    }
}
