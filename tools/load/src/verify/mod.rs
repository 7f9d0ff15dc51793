//! Verifies admissions against the bound of each limit.
//!
//! Only certain violations are reported. An [`Admission`] happened at an unknown time between
//! [`from`](Admission::from) and [`to`](Admission::to); a span certainly contains only the
//! admissions that lie entirely inside it. If the reply contains the store's time, `from` is that
//! time, and `to` is later by the duration of the request: a store reads its clock before it locks
//! the key, and a request that overtakes another one there is decided at the later of the two
//! times. Otherwise both are the client's times, and spans are extended by the possible difference
//! between two clocks ([`TimeSource::Client`]). Charges by other clients, earlier or concurrent,
//! only reduce what this client is admitted.
//!
//! Every bound below limits S, the cost admitted from time a to time b inclusive, with T = b − a. L
//! is the count, W the window; all times are whole microseconds.
//!
//! # Token bucket and queue
//! The bucket contains at most its capacity B at a, and gains L/W per µs: **S ≤ B + L·T/W**. If the
//! tick of the limit is longer than a µs, both ends are rounded down to it, as the limit does; if
//! they are the client's, rounding lengthens T by at most tick − 1. For a queue, B is its places
//! plus one.
//!
//! # Windows made of buckets
//! A fixed window is one bucket of W, a sliding log is W buckets of a µs, `sliding by P` is W/P
//! buckets of P, and one more with `strict`. In all of them any n consecutive buckets admit at most
//! L. With a and b in the buckets numbered i and k: **S ≤ L if k − i < n**. A longer span consists
//! of (k − i) / n times n buckets and a rest: **S ≤ L + L·(k − i)/n**. The start of the buckets is
//! known only in the store's time; otherwise a span of T touches at most ⌈T/P⌉ + 1 of them, which
//! gives S ≤ L for T ≤ (n − 1)·P, S ≤ 2L for T ≤ (2n − 1)·P, and S ≤ L + L·(T + P − 1)/(n·P). A
//! window that opens with its first charge is a bucket of W with an unknown start, because another
//! client may have opened it.
//!
//! # Sliding window counters
//! Let p be the cost of the previous window, e the ticks since the current one began, N the ticks
//! of a window. Every admission satisfies ⌊p·(N − e)/N⌋ + c ≤ L, where c is the cost of the current
//! window so far. The verification recomputes this with the certain part of p and the latest e,
//! which needs the store's time. For an arbitrary span: let it start before the end of a window,
//! with A ≤ L admitted there, and end e ticks into the m-th window after it. The windows between
//! admit at most L each, and the last one together with the one before it at most L + ⌈L·e/N⌉. So S
//! ≤ m·L + ⌈L·e/N⌉, and T ≥ (m − 1)·W + e ticks + 1: **S ≤ L + ⌈L·(T − 1)/W⌉**.
//!
//! # Departures from a queue
//! A request departs W/L later for each unit of the previous one. Departures are rounded up to a µs
//! or, behind an empty queue, to the time of the request, which is less than a tick away. So all
//! departures within T except the last one cost **less than (T + tick)·L/W**. At most the places
//! plus one wait at the same time, which is counted like leases.
//!
//! # Leases
//! A slot is certainly held from `to` until the reply to its release, or until the lease's duration
//! after `from`. The slots held at the same time are **at most L**.

mod admission;
mod bound;
mod linear;
mod overlap;
mod spans;
mod verdict;

pub use admission::{Admission, TimeSource};
pub use verdict::{Verdict, Verifier, Violation};
