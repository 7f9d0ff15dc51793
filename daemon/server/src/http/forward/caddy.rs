//! `forward_auth` of Caddy, which sets its headers by itself.

use super::dialect::{Dialect, Told};
use crate::rules::AddressHeader;

pub(super) const CADDY: Dialect = Dialect {
    name: "caddy",
    method: Told::Header("X-Forwarded-Method", "header_up X-Forwarded-Method {method}"),
    target: Told::Header("X-Forwarded-Uri", "header_up X-Forwarded-Uri {uri}"),
    host: Told::Header("X-Forwarded-Host", "header_up X-Forwarded-Host {hostport}"),
    address: AddressHeader { name: "X-Forwarded-For", is_list: true },
    address_line: "header_up X-Forwarded-For {remote_host}",
};
