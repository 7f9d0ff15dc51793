//! `ext_authz` of Envoy over HTTP, which sends the request as it came, its path behind a prefix.

use super::dialect::{Dialect, Told};
use crate::rules::AddressHeader;

pub(super) const ENVOY: Dialect = Dialect {
    name: "envoy",
    method: Told::ByTheRequest,
    target: Told::ByTheRequest,
    host: Told::ByTheRequest,
    address: AddressHeader { name: "X-Forwarded-For", is_list: true },
    address_line: "allowed_headers: { patterns: [{ exact: x-forwarded-for }] }, and \
                   use_remote_address: true",
};
