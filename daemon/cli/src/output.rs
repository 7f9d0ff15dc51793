//! Output to standard output and standard error.

use std::io::{self, ErrorKind, IsTerminal, Write};

use tollgate_daemon::Config;

/// Writes to standard output. A closed pipe is not an error.
pub(crate) fn print(text: &str) -> io::Result<()> {
    let mut output = io::stdout().lock();
    let written = output.write_all(text.as_bytes()).and_then(|()| output.flush());
    written.or_else(|error| if error.kind() == ErrorKind::BrokenPipe { Ok(()) } else { Err(error) })
}

/// Writes to standard error. A failure cannot be reported and is ignored.
pub(crate) fn print_error(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// Writes the hint of an answer to standard error, without control characters.
pub(crate) fn print_hint(hint: Option<&str>) {
    if let Some(hint) = hint {
        let printable: String = hint.chars().filter(|c| !c.is_control()).collect();
        print_error(&format!("hint: {printable}\n"));
    }
}

/// Whether to use colours on standard output: <https://no-color.org>.
pub(crate) fn has_colours() -> bool {
    let is_disabled = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let is_dumb = std::env::var_os("TERM").is_some_and(|value| value == "dumb");
    !is_disabled && !is_dumb && io::stdout().is_terminal()
}

/// The number of columns of standard output; 100 if it is not a terminal.
pub(crate) fn columns() -> usize {
    let size = rustix::termios::tcgetwinsize(io::stdout());
    size.ok().map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0).unwrap_or(100)
}

/// Rows in columns: the first one aligned to the left, the others to the right.
pub(crate) fn table<const N: usize>(rows: &[[String; N]]) -> String {
    let mut widths = [0; N];
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (index, (cell, width)) in row.iter().zip(widths).enumerate() {
            match index {
                0 => line.push_str(&format!("{cell:width$}")),
                _ => line.push_str(&format!("  {cell:>width$}")),
            }
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// A number with its noun.
pub(crate) fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// The bounds of the memory store, in the notation of the configuration.
pub(crate) fn memory_bounds(config: &Config) -> String {
    let store = &config.store;
    let units = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let (bytes, unit) = units
        .into_iter()
        .find(|(size, _)| store.max_bytes.is_multiple_of(*size))
        .map_or((store.max_bytes, " bytes"), |(size, unit)| (store.max_bytes / size, unit));
    format!("at most {} and {bytes}{unit}", counted(store.max_keys, "key", "keys"))
}
