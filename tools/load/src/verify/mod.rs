//! What was admitted, held against the bound of each limit.
//!
//! A violation is only what is certain. An [`Admission`] happened at some time that nobody saw, between
//! [`from`](Admission::from) and [`to`](Admission::to); so a span holds for certain only what lies in
//! it whole. Where the answer says the store's time, `from` is that time and `to` is later by as
//! long as the answer took: a store reads its clock before it holds the key, and whoever overtakes
//! it there makes it decide at the later time of the two. Where it does not, both are the caller's, and
//! spans are taken longer by what two clocks may differ ([`Times::Caller`]). Whoever else charges a
//! key, now or before, can only lessen what is admitted to us.
//!
//! Every bound below is on S, the cost that is admitted at times a to b, both included, with T =
//! b − a. L is the count, W the window, all times whole microseconds.
//!
//! # Token bucket and queue
//! At most the capacity B is in the bucket at a, and L/W a µs comes in after: **S ≤ B + L·T/W**. Where
//! the limit's tick is longer than a µs both ends are floored to it, as the limit floors them; if
//! they are the caller's the floor can lengthen T by tick − 1 at most. Of a queue B is its places and
//! one.
//!
//! # Windows in buckets
//! A fixed window is one bucket of W, a log is W buckets of a µs, `sliding by P` is W/P of P, and with
//! `strict` one more. In each of them any n buckets that follow each other hold at most L. With a and
//! b in the buckets numbered i and k: **S ≤ L if k − i < n**. So (k − i) / n whole times n buckets
//! and the rest are passed, and **S ≤ L + L·(k − i)/n**. Where the buckets begin is known of the
//! store's time; else a span of T meets at most ⌈T/P⌉ + 1 of them, which gives S ≤ L for T ≤ (n − 1)·P,
//! S ≤ 2L for T ≤ (2n − 1)·P, and S ≤ L + L·(T + P − 1)/(n·P). A window that opens with its first
//! charge is a bucket of W that begins nobody knows when: a charge before ours may have opened it.
//!
//! # Weighted windows
//! Let p be what a window held, e the ticks since the next one began, N a window's ticks. All
//! that is admitted there keeps ⌊p·(N − e)/N⌋ + c ≤ L, with c what it held by then: so it is computed
//! again, with the p that is certain and the latest e. That takes the store's time. Over any span: let
//! it begin before a window's end, with A ≤ L admitted there, and end e ticks into the m-th after. The
//! windows between hold at most L each, and the last one together with the one before at most L + ⌈L·e/N⌉.
//! So S ≤ m·L + ⌈L·e/N⌉, and T ≥ (m − 1)·W + e ticks + 1: **S ≤ L + ⌈L·(T − 1)/W⌉**.
//!
//! # Departures from a queue
//! Each departs W/L for each unit of the one before it later than that, before times are rounded up to
//! a µs or, behind an empty queue, to the time of the request, which is less than a tick away. So of
//! what departs within T all but the last make **less than (T + tick)·L/W**; and at most the places and
//! one wait at once, which is counted as leases are.
//!
//! # Leases
//! A place is held for certain from `to` until it was released, by the answer of the release, or
//! until the lease's length after `from`. All that is held at one time is **at most L**.

mod admission;
mod bound;
mod linear;
mod overlap;
mod spaced;
mod verdict;
mod weighted;
mod within;

pub use admission::{Admission, Times};
pub use verdict::{Verdict, Verifier, Violation};
