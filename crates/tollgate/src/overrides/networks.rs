//! Networks of addresses.

use super::network::Network;
use super::place;

/// Networks in order, each with what it gives and the smallest other that it lies in. A lookup is
/// that of beginnings.
#[derive(Debug, Default)]
pub(super) struct Networks(Box<[Row]>);

#[derive(Debug)]
struct Row {
    network: Network,
    allowance: u32,
    parent: Option<u32>,
}

impl Networks {
    /// Of networks in ascending order, no two alike.
    pub(super) fn of_sorted(sorted: impl IntoIterator<Item = (Network, u32)>) -> Self {
        let mut rows: Vec<Row> = Vec::new();
        // The networks that the one at hand may lie in, the smallest last.
        let mut around: Vec<(u32, Network)> = Vec::new();
        for (number, (network, allowance)) in (0..).zip(sorted) {
            while around.pop_if(|(_, x)| !x.contains(&network)).is_some() {}
            rows.push(Row { network, allowance, parent: around.last().map(|around| around.0) });
            around.push((number, network));
        }
        Networks(rows.into_boxed_slice())
    }

    /// The smallest that an address lies in: its length, and what it gives.
    pub(super) fn find(&self, address: Network) -> Option<(u8, u32)> {
        let after = self.0.partition_point(|x| x.network <= address);
        let mut row = self.0.get(after.checked_sub(1)?)?;
        while !row.network.contains(&address) {
            row = self.0.get(place(row.parent?))?;
        }
        Some((row.network.length(), row.allowance))
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}
