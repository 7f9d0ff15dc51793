//! Many short texts in one piece of memory.

use super::place;

/// Texts by number, in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Texts {
    bytes: Vec<u8>,
    /// Where each text ends, and the next begins.
    ends: Vec<u32>,
}

/// There is no room for one more: 4 GiB are taken.
#[derive(Debug)]
pub(super) struct Full;

impl Texts {
    /// Its number.
    pub(super) fn push(&mut self, text: &[u8]) -> Result<u32, Full> {
        let number = u32::try_from(self.ends.len()).map_err(|_| Full)?;
        let end = u32::try_from(self.bytes.len() + text.len()).map_err(|_| Full)?;
        self.bytes.extend_from_slice(text);
        self.ends.push(end);
        Ok(number)
    }

    pub(super) fn get(&self, number: u32) -> &[u8] {
        let end = self.ends.get(place(number)).copied().unwrap_or_default();
        let start = number.checked_sub(1).and_then(|x| self.ends.get(place(x)).copied());
        self.bytes.get(place(start.unwrap_or_default())..place(end)).unwrap_or_default()
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn shrink(&mut self) {
        self.bytes.shrink_to_fit();
        self.ends.shrink_to_fit();
    }
}
