//! The Redis and Valkey store: state that any number of processes share, decided by a script.
//!
//! [`RedisStore`] is the store; its URL says which server, cluster or sentinels, and
//! [`RedisOptions`] the rest. One request is one round trip, and those that wait share it.
//!
//! # The user
//! On the server Tollgate needs these rights, and no others; with another namespace, that in place
//! of `tollgate:`. The line is one for `ACL SETUSER` (without `user`) or an ACL file:
//! ```text
//! user tollgate on >PASSWORD resetkeys ~tollgate:* resetchannels -@all +evalsha +script|load +time \
//! +get +getrange +strlen +mget +set +setrange +del +type +pexpireat +hget +hgetall +hset +hdel \
//! +zadd +zrem +zcard +zrange +zrangebyscore +info +role +cluster|slots +asking
//! ```
//! - `+info` is for [`RedisStore::warnings`] only; without it there are none.
//! - `+role` is asked behind sentinels; without it a master that is none is noticed by the first
//!   write.
//! - `+cluster|slots` and `+asking` are needed on a cluster only.
//! - [`RedisStore::flush_namespace`] needs `+scan` and `+unlink` besides, which a user who decides for others
//!   should not have. A log that is replayed has a namespace of its own: `~THAT:*`.
//!
//! A database other than 0 needs `+select`. Sentinels have users of their own: they are asked
//! `SENTINEL GET-MASTER-ADDR-BY-NAME`.

mod answer;
mod ask;
mod asked;
mod encoding;
mod erase;
mod error;
mod link;
mod names;
mod node;
mod open_error;
mod options;
mod script;
mod several;
mod stats;
mod store;
mod topology;
mod url;
mod waiting;
mod warnings;

pub use erase::FlushError;
pub use open_error::OpenError;
pub use options::{Pem, RedisOptions};
pub use stats::RedisStats;
pub use store::RedisStore;
pub use warnings::Warning;
