//! Rows: requests with the expected decisions as readable tables, which run on every store.
//!
//! A file of `rows/` is text, one row a line; `#` begins a comment at the start of a word.
//!
//! ```text
//! base 2026-11-20T10:59:00Z                     # where times count from
//! == a burst, then one a second                 # a section: a fresh store
//! policy p  1/s burst 5
//! at 0s    check p k 6    -> never     capacity 5 remaining 5 reset 0
//! at 0s 5x check p k      -> allowed   remaining 4..0 reset 1..5
//! at 1s-1us check p k     -> denied    retry 1us
//! rows 3                                        # the plan: how many rows the file has
//! ```
//!
//! - **Times** are sums of terms, such as `1h5m`, `60s-1us`, `-10y` (a year has 365 d), from the
//!   base; a bare number is seconds. `at 10:59:58.5` is a time of the base's day, and
//!   `at 2026-11-20T10:59:00Z` is itself. What stands before the first section (`base`, `policy`)
//!   holds in all of them. The base is 2026-11-20T00:00:00Z, a Friday, unless a file says so.
//! - **Policies**: `policy NAME [OPTION…] LIMITS`. PolicyLine again it is a live change. Options:
//!   `shadow`, `log-entries=N`, `named=NAME` (two forms of one policy side by side), `unnamed`
//!   (limits given as text). `refuse LIMITS -> WORDS` holds that they make no policy, and why.
//! - **Rows**: `at TIME [every SPAN] [Nx] VERB [POLICY KEY [COST] [and …]] [OPTION…] -> EXPECTED`.
//!   Options: `as ID` (a lease or reservation), `max-wait SPAN`, `time TIME`, `for SPAN`,
//!   `request ID`. `Nx` asks N times, `every` so far apart. A key or request id `''` is empty,
//!   `k*300` is 300 times `k`, `hex:00ff` is two bytes; `k1..k33` is 33 checks.
//! - **Expected** is a verdict (`allowed`, `denied`, `never`; of operations that do not decide,
//!   `changed` or `unchanged`), then fields; those not named are not compared. `remaining 9..0`
//!   goes in equal steps over the row's repetitions. Of several checks, the whole request's
//!   verdict and retry come first, then, after a `|` each, those of the checks. After a `;`,
//!   `limit 2: denied retry 0.4` is what one limit says, as numbered in the policy's text.
//!   `error WORDS` is a request that cannot be decided, with words of the message.

mod compare;
mod expected;
mod files;
mod parse;
mod policies;
mod request;
mod run;
mod spans;
#[cfg(test)]
mod tests;
mod words;

pub use files::{files, read};
pub use parse::{ParseError, Rows};
pub use run::{Failure, Report, run};
