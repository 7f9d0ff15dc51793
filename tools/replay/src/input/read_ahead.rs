//! A thread that reads files ahead.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use super::block::{
    Buffers, CountingReader, InputError, InputErrorKind, MAX_LINE_LEN, Part, Progress,
};
use super::decompress::{Compression, open};
use super::split::{LineSplitter, Queue};

/// How many parts are read ahead.
const PARTS_AHEAD: usize = 4;

/// How often a waiting consumer checks whether it is stopped.
const STOP_CHECK_INTERVAL: Duration = Duration::from_millis(50);

const STANDARD_INPUT: &str = "-";

/// The parts of several files in order. `-` is standard input. A file that starts like gzip or
/// Zstandard is decompressed, with any number of members or frames.
///
/// A file that cannot be read yields an error in its place; iteration can continue with the next
/// file. Dropping the input ends the thread, except during a read that blocks.
#[derive(Debug)]
pub struct Input {
    messages: Receiver<Message>,
    /// Ends the reader thread.
    stop: Arc<AtomicBool>,
    queue: Queue,
    progress: Progress,
    /// The file and the line of the last part; `None` after the end.
    at: Option<(Arc<str>, u64)>,
}

/// A part or an error; `None` at the end.
type Message = Option<Result<Part, InputError>>;

impl Drop for Input {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

impl Input {
    /// Starts to read files.
    pub fn open(paths: impl IntoIterator<Item: Into<PathBuf>>) -> Self {
        let paths: Vec<PathBuf> = paths.into_iter().map(Into::into).collect();
        let total = paths.iter().map(|path| length(path)).sum();
        let progress = Progress { total, ..Progress::default() };
        let sources = paths.into_iter().map(|path| {
            let name = path.to_string_lossy().into_owned();
            (name, move || match is_standard_input(&path) {
                true => Ok(Source::Stdin),
                false => File::open(&path).map(Source::File),
            })
        });
        Input::start(progress, sources.collect())
    }

    /// Starts to read `from` under a name.
    pub fn from_reader(name: &str, from: impl Read + Send + 'static) -> Self {
        let source = move || Ok(Source::Other(Box::new(from)));
        Input::start(Progress::default(), vec![(name.to_owned(), source)])
    }

    /// The progress of reading.
    pub fn progress(&self) -> Progress {
        self.progress.clone()
    }

    /// The next part; `None` at the end or once `stop` is set, even while standard input is silent.
    pub fn next_unless(&mut self, stop: &AtomicBool) -> Option<Result<Part, InputError>> {
        loop {
            if stop.load(Ordering::Relaxed) {
                return None;
            }
            match self.messages.recv_timeout(STOP_CHECK_INTERVAL) {
                Ok(message) => return self.handle(Some(message)),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return self.handle(None),
            }
        }
    }

    /// Handles a message; `None` means that the thread has ended.
    fn handle(&mut self, message: Option<Message>) -> Option<Result<Part, InputError>> {
        let at = self.at.as_mut()?;
        // Without a message, the thread panicked.
        let Some(message) = message else {
            let (name, lines) = self.at.take()?;
            return Some(Err(InputError { name, lines, kind: InputErrorKind::Stopped }));
        };
        match &message {
            Some(Ok(part)) => {
                self.queue.take();
                if let Part::Lines(block) = part {
                    *at = (Arc::clone(&block.beginning.name), block.first_line);
                }
            }
            Some(Err(_)) => {}
            None => self.at = None,
        }
        message
    }

    fn start<O>(progress: Progress, sources: Vec<(String, O)>) -> Self
    where
        O: FnOnce() -> io::Result<Source> + Send + 'static,
    {
        let (sender, messages) = sync_channel(PARTS_AHEAD);
        let (stop, queue) = (Arc::<AtomicBool>::default(), Queue::default());
        let reader = ReadAhead {
            sender,
            stop: stop.clone(),
            queue: queue.clone(),
            progress: progress.clone(),
            buffers: Buffers::new(MAX_LINE_LEN),
        };
        // The thread is not joined, because it may wait for a terminal. If it cannot be spawned,
        // its end of the channel is dropped, which is reported as an error.
        let _thread = thread::Builder::new()
            .name("tollgate-input".to_owned())
            .spawn(move || reader.read_all(sources));
        let at = Some((Arc::from(STANDARD_INPUT), 0));
        Input { messages, stop, queue, progress, at }
    }
}

impl Iterator for Input {
    type Item = Result<Part, InputError>;

    fn next(&mut self) -> Option<Self::Item> {
        let message = self.messages.recv().ok();
        self.handle(message)
    }
}

/// The state of the reader thread.
struct ReadAhead {
    sender: SyncSender<Message>,
    stop: Arc<AtomicBool>,
    queue: Queue,
    progress: Progress,
    buffers: Buffers,
}

/// `None` once the consumer is gone.
type Continue = Option<()>;

impl ReadAhead {
    fn read_all(self, sources: Vec<(String, impl FnOnce() -> io::Result<Source>)>) -> Continue {
        for (file, (name, open)) in sources.into_iter().enumerate() {
            let name = Arc::from(name);
            match open() {
                Ok(source) => self.read(file, &name, source)?,
                Err(error) => self.fail(&name, 0, InputErrorKind::Open(error.to_string()))?,
            }
        }
        self.send(None)
    }

    fn read(&self, file: usize, name: &Arc<str>, source: Source) -> Continue {
        let counted = CountingReader { inner: source, progress: self.progress.clone() };
        let (compression, reader) = match open(StoppableReader { inner: counted, stop: &self.stop })
        {
            Ok(opened) => opened,
            Err(error) => return self.fail(name, 0, InputErrorKind::Read(error.to_string())),
        };
        if let Compression::Other(program) = compression {
            return self.fail(name, 0, InputErrorKind::Unsupported(program));
        }
        let (buffers, queue) = (self.buffers.clone(), self.queue.clone());
        let mut splitter = LineSplitter::new(file, Arc::clone(name), reader, buffers, queue);
        loop {
            match splitter.next() {
                Ok(Some(part)) => {
                    self.queue.put();
                    self.send(Some(Ok(part)))?;
                }
                Ok(None) => return Some(()),
                Err(error) => {
                    let is_system_error = error.raw_os_error().is_some();
                    let kind = match compression {
                        Compression::None => InputErrorKind::Read,
                        _ if is_system_error => InputErrorKind::Read,
                        _ => InputErrorKind::Decompress,
                    };
                    return self.fail(name, splitter.lines, kind(error.to_string()));
                }
            }
        }
    }

    fn fail(&self, name: &Arc<str>, lines: u64, kind: InputErrorKind) -> Continue {
        self.send(Some(Err(InputError { name: Arc::clone(name), lines, kind })))
    }

    fn send(&self, message: Message) -> Continue {
        if self.stop.load(Ordering::Relaxed) {
            return None;
        }
        self.sender.send(message).ok()
    }
}

/// A reader that ends once it is stopped, so that no thread keeps skipping an endless line.
struct StoppableReader<'s, R> {
    inner: R,
    stop: &'s AtomicBool,
}

impl<R: Read> Read for StoppableReader<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.stop.load(Ordering::Relaxed) { Ok(0) } else { self.inner.read(buffer) }
    }
}

enum Source {
    File(File),
    Stdin,
    Other(Box<dyn Read + Send>),
}

impl Read for Source {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Source::File(file) => file.read(buffer),
            Source::Stdin => io::stdin().read(buffer),
            Source::Other(other) => other.read(buffer),
        }
    }
}

fn is_standard_input(path: &Path) -> bool {
    path.as_os_str() == STANDARD_INPUT
}

/// The size of a file; `None` if it is unknown. A file that cannot be read counts as empty, and is
/// reported when it is opened.
fn length(path: &Path) -> Option<u64> {
    if is_standard_input(path) {
        return None;
    }
    match fs::metadata(path) {
        Ok(metadata) => metadata.is_file().then_some(metadata.len()),
        Err(_) => Some(0),
    }
}
