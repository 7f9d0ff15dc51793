//! Files, plain or compressed, and standard input, as blocks of whole lines.
//!
//! A thread of its own reads and decompresses ahead, a few blocks at most; [`Input`] yields them in the
//! order of the files. Each block can be parsed by itself, on any thread, and [`in_order`] gives what
//! threads made of them in the order of the lines. So a log becomes ordered events:
//!
//! ```
//! use std::ops::ControlFlow;
//! use std::sync::Arc;
//! use tollgate::Micros;
//! use tollgate_replay::input::{Beginning, Input, Part, in_order};
//! use tollgate_replay::log::{BrokenLine, Fields, Reader, Stamp};
//! use tollgate_replay::order::Order;
//!
//! # let mut log = Vec::new();
//! # tollgate_replay::generate::write_combined(&"steady rate 9/s".parse()?, &mut log)?;
//! # let input = Input::of("access.log", std::io::Cursor::new(log));
//! # let _ = || {
//! let input = Input::open(["access.log.1.gz", "access.log"]);
//! # };
//! /// What a thread makes of a block; `u64` stands for whatever small thing tells the key.
//! #[derive(Default)]
//! struct Parsed {
//!     events: Vec<(Stamp, u64)>,
//!     broken: Vec<(u64, BrokenLine)>,
//! }
//!
//! // Each thread has the reader of the file that it was given last.
//! let worker = || {
//!     let mut last: Option<(Arc<Beginning>, Reader)> = None;
//!     move |part: Result<Part, _>| -> Result<Parsed, Box<dyn std::error::Error + Send + Sync>> {
//!         let mut parsed = Parsed::default();
//!         let Part::Lines(block) = part? else { return Ok(parsed) };
//!         let (_, reader) = match last.take() {
//!             Some(it) if Arc::ptr_eq(&it.0, block.beginning()) => last.insert(it),
//!             _ => {
//!                 let reader = Reader::open(None, &block.beginning().lines, &Fields::default())?;
//!                 last.insert((Arc::clone(block.beginning()), reader))
//!             }
//!         };
//!         for (number, line) in block.lines() {
//!             match reader.read(line) {
//!                 Ok(Some(line)) => {
//!                     let key = line.address.map_or(0, |it| it.iter().map(|it| u64::from(*it)).sum());
//!                     parsed.events.push((line.time, key));
//!                 }
//!                 Ok(None) => {}
//!                 Err(broken) => parsed.broken.push((number, broken)),
//!             }
//!         }
//!         Ok(parsed)
//!     }
//! };
//!
//! let mut order = Order::new(Micros::from_secs(60), true);
//! let (mut due, mut decided) = (Vec::new(), 0);
//! in_order(input, 2, worker, |parsed| {
//!     let Ok(parsed) = parsed else { return ControlFlow::Break(()) };
//!     parsed.events.into_iter().for_each(|(stamp, key)| order.push(stamp, key));
//!     order.release(&mut due);
//!     decided += due.drain(..).count();
//!     ControlFlow::Continue(())
//! });
//! order.finish(&mut due);
//! assert_eq!(decided + due.len(), 5_400);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod block;
mod cut;
mod decompress;
mod error;
mod parallel;
mod progress;
mod read_ahead;

pub use block::{Beginning, Block, LONGEST_LINE, Part, TooLong};
pub use error::{InputError, InputErrorKind};
pub use parallel::in_order;
pub use progress::Progress;
pub use read_ahead::{Input, Stopper};
