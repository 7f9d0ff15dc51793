//! HTTP headers that the daemon and the middleware share: the rate limit headers of a response, and
//! the client address in the headers of a request behind trusted proxies.

mod address;
mod forwarded;
mod network;
mod ratelimit;

pub use address::{AddressFormat, AddressHeader, ClientAddressError, client_address};
pub use network::{Ipv6Prefix, Networks, Peer};
pub use ratelimit::{HeaderStyle, violated, write};
