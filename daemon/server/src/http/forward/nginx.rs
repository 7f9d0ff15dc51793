//! `auth_request` of nginx, which sends what the recipe has it send.

use super::dialect::{Dialect, Told};
use crate::rules::AddressHeader;

pub(super) const NGINX: Dialect = Dialect {
    name: "nginx",
    method: Told::Header(
        "X-Original-Method",
        "proxy_set_header X-Original-Method $request_method;",
    ),
    target: Told::Header("X-Original-URI", "proxy_set_header X-Original-URI $request_uri;"),
    host: Told::Header("X-Original-Host", "proxy_set_header X-Original-Host $host;"),
    address: AddressHeader { name: "X-Real-IP", is_list: false },
    address_line: "proxy_set_header X-Real-IP $remote_addr;",
};
