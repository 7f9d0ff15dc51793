//! Rows: requests and their expected decisions as text, which run on every store.
//!
//! A file of `rows/` has one row per line. `#` at the start of a word begins a comment.
//!
//! ```text
//! base 2026-11-20T10:59:00Z                     # times are relative to this
//! == a burst, then one a second                 # a section has its own store
//! policy p  1/s burst 5
//! at 0s    check p k 6    -> never     capacity 5 remaining 5 reset 0
//! at 0s 5x check p k      -> allowed   remaining 4..0 reset 1..5
//! at 1s-1us check p k     -> denied    retry 1us
//! rows 3                                        # the number of rows in the file
//! ```
//!
//! - **Times** are sums of terms relative to the base, such as `1h5m`, `60s-1us`, `-10y` (a year has
//!   365 d); a bare number is seconds. `at 10:59:58.5` is a time on the day of the base, and
//!   `at 2026-11-20T10:59:00Z` is absolute. The default base is 2026-11-20T00:00:00Z, a Friday. `base`
//!   and `policy` lines before the first section apply to all sections.
//! - **Policies**: `policy NAME [OPTION…] LIMITS`. A second line with the same name changes the policy.
//!   Options: `shadow`, `log-entries=N`, `named=NAME` (for two versions of one policy at once),
//!   `unnamed` (inline limits). `refuse LIMITS -> WORDS` expects an error whose message contains the
//!   words.
//! - **Rows**: `at TIME [every SPAN] [Nx] OPERATION [POLICY KEY [COST] [and …]] [OPTION…] -> EXPECTED`.
//!   Options: `as ID` (a lease or reservation), `max-wait SPAN`, `time TIME`, `for SPAN`,
//!   `request ID`. `Nx` repeats the request N times, at intervals of `every`. A key or request id `''`
//!   is empty, `k*300` is 300 times `k`, `hex:00ff` is two bytes; `k1..k33` is 33 checks.
//! - **Expected** is a verdict (`allowed`, `denied`, `never`; for operations that do not decide,
//!   `changed` or `unchanged`) and fields; other fields are not compared. `remaining 9..0` goes in equal
//!   steps over the repetitions of the row. With several checks, the verdict and the retry of the
//!   request come first, followed by those of each check after a `|`. After a `;`,
//!   `limit 2: denied retry 0.4` is the decision of one limit, as numbered in the text of the policy.
//!   `error WORDS` expects an error whose message contains the words.

mod compare;
mod expected;
mod parse;
mod policies;
mod request;
mod run;
mod spans;
#[cfg(test)]
mod tests;
mod words;

pub use parse::{ParseError, Rows};
pub use run::{Failure, Report, files, read, run, run_all};
