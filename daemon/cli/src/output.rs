//! Writing to the terminal, or to whatever stands in its place.

use std::io::{self, ErrorKind, IsTerminal, Write};

/// Writes to standard output. That nobody reads on is no error.
pub(crate) fn print(text: &str) -> io::Result<()> {
    let mut output = io::stdout().lock();
    let written = output.write_all(text.as_bytes()).and_then(|()| output.flush());
    written.or_else(|error| if error.kind() == ErrorKind::BrokenPipe { Ok(()) } else { Err(error) })
}

/// Writes to standard error; there is nobody to tell if that fails.
pub(crate) fn complain(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// Whether standard output shows colours: <https://no-color.org>.
pub(crate) fn has_colours() -> bool {
    let refused = std::env::var_os("NO_COLOR").is_some_and(|var_os| !var_os.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|var_os| var_os == "dumb");
    !refused && !dumb && io::stdout().is_terminal()
}

/// How many columns standard output has; 100 where it is no terminal.
pub(crate) fn columns() -> usize {
    let size = rustix::termios::tcgetwinsize(io::stdout());
    size.ok().map(|size| usize::from(size.ws_col)).filter(|x| *x > 0).unwrap_or(100)
}
