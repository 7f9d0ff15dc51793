//! The messages as JSON, as protobuf's third version writes them (<https://protobuf.dev/programming-guides/json/>).

mod request;
mod response;

pub(crate) use self::request::request;
pub(crate) use self::response::response;
