//! Addresses that servers announce, and the addresses to connect to instead.

use std::collections::BTreeMap;

use tollgate_state::OpenError;

use super::address::{Address, parse};
use crate::error::invalid_option;

/// Where servers can be reached that announce another address: behind a NAT, or in containers.
#[derive(Clone, Debug, Default)]
pub(crate) struct AddressMap(BTreeMap<Address, Address>);

impl AddressMap {
    /// Parses pairs of `host:port`.
    pub(crate) fn new(pairs: &BTreeMap<String, String>) -> Result<Self, OpenError> {
        let address = |text: &str| {
            let has_port = text.rsplit_once(':').is_some_and(|(_, port)| !port.ends_with(']'));
            let parsed = has_port.then(|| parse(text, 0).ok()).flatten();
            let remedy = "write HOST:PORT, as in 10.0.0.5:6379";
            parsed.ok_or_else(|| invalid_option("address_map", text, remedy))
        };
        let pairs = pairs
            .iter()
            .map(|(announced, actual)| Ok::<_, OpenError>((address(announced)?, address(actual)?)));
        pairs.collect::<Result<_, _>>().map(AddressMap)
    }

    /// Returns where to connect to for an announced address.
    pub(crate) fn translate(&self, announced: Address) -> Address {
        self.0.get(&announced).cloned().unwrap_or(announced)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(announced: &str, actual: &str) -> Result<AddressMap, OpenError> {
        AddressMap::new(&BTreeMap::from([(announced.to_owned(), actual.to_owned())]))
    }

    #[test]
    fn announced_addresses_are_translated_and_others_are_not() {
        let map = map("10.0.0.5:6379", "[::1]:7001").unwrap();
        assert_eq!(map.translate(Address::tcp("10.0.0.5", 6379)), Address::tcp("::1", 7001));
        for other in [Address::tcp("10.0.0.5", 6380), Address::tcp("::1", 7001)] {
            assert_eq!(map.translate(other.clone()), other);
        }
    }

    #[test]
    fn addresses_need_a_host_and_a_port() {
        for invalid in ["10.0.0.5", "[::1]", ":6379", "h:0", "h:x", ""] {
            let error = map(invalid, "h:1").unwrap_err().to_string();
            let expected = format!("the option address_map = {invalid:?} of the store: write HOST");
            assert!(error.starts_with(&expected), "{error}");
            map("h:1", invalid).unwrap_err();
        }
    }
}
