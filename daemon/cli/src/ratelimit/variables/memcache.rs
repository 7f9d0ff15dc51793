//! Memcached, which is no store of Tollgate's.

use super::super::value::Kind;
use super::{Group, ignored};

const WHY: &str = "Memcached is no store here; BACKEND_TYPE says which is: redis or memory";

pub(super) const GROUP: Group = Group {
    title: "Memcached",
    variables: &[
        ignored("MEMCACHE_HOST_PORT", Kind::List, "", WHY),
        ignored("MEMCACHE_MAX_IDLE_CONNS", Kind::Whole, "2", WHY),
        ignored("MEMCACHE_SRV", Kind::Text, "", WHY),
        ignored("MEMCACHE_SRV_REFRESH", Kind::Duration, "0", WHY),
        ignored("MEMCACHE_TLS", Kind::Truth, "false", WHY),
        ignored("MEMCACHE_TLS_CLIENT_CERT", Kind::Text, "", WHY),
        ignored("MEMCACHE_TLS_CLIENT_KEY", Kind::Text, "", WHY),
        ignored("MEMCACHE_TLS_CACERT", Kind::Text, "", WHY),
        ignored("MEMCACHE_TLS_SKIP_HOSTNAME_VERIFICATION", Kind::Truth, "false", WHY),
    ],
};
