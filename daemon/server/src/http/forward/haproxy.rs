//! A Lua action of HAProxy, which sends what the recipe has it send.

use super::dialect::{Dialect, Told};
use crate::rules::AddressHeader;

pub(super) const HAPROXY: Dialect = Dialect {
    name: "haproxy",
    method: Told::Header("X-Forwarded-Method", r#"["x-forwarded-method"] = { txn.f:method() }"#),
    target: Told::Header("X-Forwarded-Uri", r#"["x-forwarded-uri"] = { txn.f:pathq() }"#),
    host: Told::Header("X-Forwarded-Host", r#"["x-forwarded-host"] = { txn.f:req_hdr("host") }"#),
    address: AddressHeader { name: "X-Forwarded-For", is_list: true },
    address_line: r#"["x-forwarded-for"] = { txn.f:src() }"#,
};
