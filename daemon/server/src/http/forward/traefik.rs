//! `forwardAuth` of Traefik, which sets its headers by itself.

use super::dialect::{Dialect, Told};
use crate::rules::AddressHeader;

/// What makes Traefik set all of them anew.
const LINE: &str = "trustForwardHeader: false";

pub(super) const TRAEFIK: Dialect = Dialect {
    name: "traefik",
    method: Told::Header("X-Forwarded-Method", LINE),
    target: Told::Header("X-Forwarded-Uri", LINE),
    host: Told::Header("X-Forwarded-Host", LINE),
    address: AddressHeader { name: "X-Forwarded-For", is_list: true },
    address_line: LINE,
};
