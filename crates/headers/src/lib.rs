//! HTTP headers that the daemon and the middleware share: the rate limit headers of a response, those of
//! an upstream, and the client address in the headers of a request behind trusted proxies.

mod address;
mod forwarded;
mod network;
mod ratelimit;
mod upstream;

pub use address::{AddressFormat, AddressHeader, ClientAddressError, client_address};
pub use network::{Ipv6Prefix, Networks, Peer};
pub use ratelimit::{HeaderStyle, violated, write};
pub use upstream::upstream_wait;
