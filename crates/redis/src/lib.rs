//! The Redis and Valkey store: any number of processes share the state, and a script decides.
//!
//! [`RedisStore`] opens a server, a cluster or a master behind sentinels by URL; [`RedisOptions`] has
//! the options. A request takes one round trip, which concurrent requests share.
//!
//! # Permissions
//! The user on the server needs exactly these permissions; replace `tollgate:` if you use another
//! namespace. The rule is for an ACL file, or without `user` for `ACL SETUSER`:
//! ```text
//! user tollgate on >PASSWORD resetkeys ~tollgate:* resetchannels -@all +fcall +function|load +time \
//! +get +mget +set +del +exists +pexpireat +hget +hgetall +hset +hdel +zadd +zrem +zcard \
//! +zcount +zscore +zrange +zrangebyscore +zrevrangebyscore +info +ping +cluster|slots +asking
//! ```
//! - `+info` is for [`RedisStore::warnings`] only, which returns none without it, and `+ping` for
//!   [`RedisStore::ping`], which takes the refusal for an answer.
//! - `+cluster|slots` and `+asking` are needed on a cluster only. With `+cluster|nodes`, a store
//!   recognizes an outdated view of the cluster at once, and otherwise asks a second node.
//! - With `+hello`, a store recognizes unsuitable servers and reports the remedy; with
//!   `+client|setname` and `+client|setinfo`, `CLIENT LIST` shows its connections as `tollgate`.
//! - [`RedisStore::flush_namespace`] also needs `+scan` and `+unlink`, which a production user should
//!   not have. A replayed log uses its own namespace: `~THAT:*`.
//!
//! A user without `+fcall` and `+function|load` needs `+evalsha` and `+script|load`; a decision then costs
//! the server more CPU time. Through a proxy, with [`RedisOptions::groups`], it needs `+evalsha` and `+eval`.
//!
//! For [`RedisStore::run_script`], as for `track` of the daemon, the user also needs `+evalsha`, `+eval` and
//! `+hmget`.
//!
//! A database other than 0 needs `+select`. Sentinels have separate users, which need
//! `SENTINEL GET-MASTER-ADDR-BY-NAME`.

mod compensation;
mod connection;
mod context;
mod credentials;
mod cross_slot;
mod decode;
mod encode;
mod encoding;
mod error;
mod extension;
mod flush_namespace;
mod handshake;
mod jitter;
mod keyspace;
mod membership;
mod network;
mod node;
mod node_stats;
mod notifications;
mod options;
mod password_rotation;
mod request;
mod request_id;
mod script;
mod stats;
mod store;
mod topology;
mod url;

pub use extension::{Script, ScriptReply};
pub use flush_namespace::FlushError;
#[doc(hidden)]
pub use network::{Network, Stream};
pub use node_stats::{BreakerState, BreakerStats, NodeStats, ScriptTime};
pub use notifications::{KeyEvent, Primary, StringRead, StringRequest, Subscription};
pub use options::{Pem, RedisOptions};
pub use stats::RedisStats;
pub use store::{LateReply, RedisStore, Reply, TimedRequest, Warning};
