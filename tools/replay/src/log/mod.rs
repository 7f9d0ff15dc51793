//! Log formats and the parsing of lines.
//!
//! A [`Reader`] parses the lines of one file in any [`Format`] into a [`Line`] that borrows from the input. An
//! invalid line is a [`LineError`] with a reason; parsing can continue with the next line.
//!
//! ```
//! use tollgate_replay::log::{Fields, Format, Reader};
//!
//! let log = br#"203.0.113.9 - ada [10/Oct/2000:13:55:36 -0700] "GET /a?b=1 HTTP/1.1" 200 2326 "-" "curl/8.5""#;
//! let mut reader = Reader::open(None, log, &Fields::default())?;
//! assert_eq!(reader.format(), Format::Combined);
//!
//! let line = reader.read(log)?.expect("it is not empty");
//! assert_eq!(line.address, Some(&b"203.0.113.9"[..]));
//! assert_eq!(line.target, Some(&b"/a?b=1"[..]));
//! assert_eq!(line.header("User-Agent"), Some(&b"curl/8.5"[..]));
//! assert_eq!(line.time.at.to_string(), "971211336");
//! assert!(line.time.whole_second);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod access;
mod csv;
mod defaults;
mod error;
mod escape;
mod fields;
mod format;
mod json;
mod line;
mod named;
mod reader;
mod time;

pub use error::{LineError, OpenError, printable};
pub use fields::{Fields, FieldsError, TimeUnit};
pub use format::{Format, UnknownFormat};
pub use line::{Line, Stamp};
pub use reader::Reader;
pub(crate) use time::parse as parse_time;
