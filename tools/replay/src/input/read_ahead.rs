//! The files, read ahead by a thread of their own.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use super::block::{Buffers, MAX_LINE_LEN, Part};
use super::cut::{Cut, Queue};
use super::decompress::{Compression, open};
use super::error::{InputError, InputErrorKind};
use super::progress::{Counted, Progress};

/// So many parts are read ahead.
const PARTS_AHEAD: usize = 4;

/// How often a wait looks whether it is still wanted.
const LOOK: Duration = Duration::from_millis(50);

/// What standard input is called.
const STANDARD_INPUT: &str = "-";

/// Files in the order in which they are given, as parts of whole lines. `-` is standard input; a file is
/// decompressed if it begins as one of gzip or Zstandard does, of any number of members or frames.
///
/// Where one cannot be read, an error is yielded in its place, and then what follows: whoever iterates
/// says whether that is the end. Dropping it ends the reading, but for a read that waits for bytes,
/// which nobody waits for.
///
/// ```
/// use tollgate_replay::input::{Input, Part};
///
/// let input = Input::of("access.log", &b"one\ntwo\n"[..]);
/// let mut lines = Vec::new();
/// for part in input {
///     match part? {
///         Part::Lines(block) => lines.extend(block.lines().map(|(_, line)| line.to_vec())),
///         Part::TooLong(line) => eprintln!("line {} is too long", line.line),
///     }
/// }
/// assert_eq!(lines, [b"one", b"two"]);
/// # Ok::<(), tollgate_replay::input::InputError>(())
/// ```
#[derive(Debug)]
pub struct Input {
    messages: Receiver<Message>,
    stop: Stop,
    queue: Queue,
    progress: Progress,
    /// Where the reading is; nothing when it has ended.
    at: Option<(Arc<str>, u64)>,
}

#[derive(Debug)]
enum Message {
    Part(Part),
    Failed(InputError),
    Ended,
}

/// Whether the reading is to end.
#[derive(Clone, Debug, Default)]
struct Stop(Arc<AtomicBool>);

impl Drop for Input {
    fn drop(&mut self) {
        self.stop.0.store(true, Ordering::Relaxed);
    }
}

impl Input {
    /// Begins to read files.
    #[must_use]
    pub fn open(paths: impl IntoIterator<Item: Into<PathBuf>>) -> Self {
        let paths: Vec<PathBuf> = paths.into_iter().map(Into::into).collect();
        let lengths = paths.iter().map(|path| length(path));
        let progress = Progress::new(lengths.sum());
        let sources = paths.into_iter().map(|path| {
            let name = path.to_string_lossy().into_owned();
            (name, move || if is_standard_input(&path) { Ok(Source::Stdin) } else { file(&path) })
        });
        Input::start(progress, sources.collect())
    }

    /// Begins to read what `from` gives, under a name.
    #[must_use]
    pub fn of(name: &str, from: impl Read + Send + 'static) -> Self {
        let source = move || Ok(Source::Other(Box::new(from)));
        Input::start(Progress::new(None), vec![(name.to_owned(), source)])
    }

    /// How far the reading is.
    #[must_use]
    pub fn progress(&self) -> Progress {
        self.progress.clone()
    }

    /// The next part; none, too, once `stop` is set, though standard input may say nothing for long.
    pub fn next_unless(&mut self, stop: &AtomicBool) -> Option<Result<Part, InputError>> {
        loop {
            if stop.load(Ordering::Relaxed) {
                return None;
            }
            match self.messages.recv_timeout(LOOK) {
                Ok(message) => return self.took(Some(message)),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return self.took(None),
            }
        }
    }

    /// What a message says; none is a thread that is gone.
    fn took(&mut self, message: Option<Message>) -> Option<Result<Part, InputError>> {
        let at = self.at.as_mut()?;
        match message {
            Some(Message::Part(part)) => {
                self.queue.take();
                if let Part::Lines(block) = &part {
                    *at = (Arc::clone(&block.beginning().name), block.first_line());
                }
                Some(Ok(part))
            }
            Some(Message::Failed(error)) => Some(Err(error)),
            Some(Message::Ended) => {
                self.at = None;
                None
            }
            // The thread is gone without a word, so it has panicked.
            None => {
                let (name, lines) = self.at.take()?;
                Some(Err(InputError { name, lines, kind: InputErrorKind::Stopped }))
            }
        }
    }

    fn start<O>(progress: Progress, sources: Vec<(String, O)>) -> Self
    where
        O: FnOnce() -> io::Result<Source> + Send + 'static,
    {
        let (sender, messages) = sync_channel(PARTS_AHEAD);
        let (stop, queue) = (Stop::default(), Queue::default());
        let reader = ReadAhead {
            sender,
            stop: stop.clone(),
            queue: queue.clone(),
            progress: progress.clone(),
            buffers: Buffers::new(MAX_LINE_LEN),
        };
        // It is never joined: it may wait for a terminal that says nothing any more. If there can be no
        // such thread, its end of the channel is gone, and that is told as an error.
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
        self.took(message)
    }
}

/// What the thread has.
#[derive(Debug)]
struct ReadAhead {
    sender: SyncSender<Message>,
    stop: Stop,
    queue: Queue,
    progress: Progress,
    buffers: Buffers,
}

/// Whether anybody still wants to know.
type Wanted = Option<()>;

impl ReadAhead {
    fn read_all(self, sources: Vec<(String, impl FnOnce() -> io::Result<Source>)>) -> Wanted {
        for (file, (name, open)) in sources.into_iter().enumerate() {
            let name = Arc::from(name);
            match open() {
                Ok(source) => self.read(file, &name, source)?,
                Err(error) => self.fail(&name, 0, InputErrorKind::Open(error.to_string()))?,
            }
        }
        self.send(Message::Ended)
    }

    fn read(&self, file: usize, name: &Arc<str>, source: Source) -> Wanted {
        let counted = Counted { inner: source, progress: self.progress.clone() };
        let (compression, reader) = match open(Stoppable { inner: counted, stop: &self.stop }) {
            Ok(opened) => opened,
            Err(error) => return self.fail(name, 0, InputErrorKind::Read(error.to_string())),
        };
        if let Compression::Other(program) = compression {
            return self.fail(name, 0, InputErrorKind::Unsupported(program));
        }
        let mut cut =
            Cut::new(file, Arc::clone(name), reader, self.buffers.clone(), self.queue.clone());
        loop {
            match cut.next() {
                Ok(Some(part)) => {
                    self.queue.put();
                    self.send(Message::Part(part))?;
                }
                Ok(None) => return Some(()),
                Err(error) => {
                    let is_of_the_system = error.raw_os_error().is_some();
                    let kind = match compression {
                        Compression::None => InputErrorKind::Read,
                        _ if is_of_the_system => InputErrorKind::Read,
                        _ => InputErrorKind::Decompress,
                    };
                    return self.fail(name, cut.lines(), kind(error.to_string()));
                }
            }
        }
    }

    fn fail(&self, name: &Arc<str>, lines: u64, kind: InputErrorKind) -> Wanted {
        self.send(Message::Failed(InputError { name: Arc::clone(name), lines, kind }))
    }

    fn send(&self, message: Message) -> Wanted {
        if self.stop.0.load(Ordering::Relaxed) {
            return None;
        }
        self.sender.send(message).ok()
    }
}

/// Ends when it is told to, so that nobody goes on to skip a line without an end.
#[derive(Debug)]
struct Stoppable<'s, R> {
    inner: R,
    stop: &'s Stop,
}

impl<R: Read> Read for Stoppable<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.stop.0.load(Ordering::Relaxed) { Ok(0) } else { self.inner.read(buffer) }
    }
}

/// Where bytes come from.
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

fn file(path: &Path) -> io::Result<Source> {
    File::open(path).map(Source::File)
}

fn is_standard_input(path: &Path) -> bool {
    path.as_os_str() == STANDARD_INPUT
}

/// How long a file is; nothing if that is not known. One that cannot be read adds nothing, and is told
/// of when its turn comes.
fn length(path: &Path) -> Option<u64> {
    if is_standard_input(path) {
        return None;
    }
    match fs::metadata(path) {
        Ok(value) => value.is_file().then_some(value.len()),
        Err(_) => Some(0),
    }
}
