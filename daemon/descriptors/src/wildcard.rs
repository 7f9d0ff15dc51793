//! Values with `*` in them.

/// A composite key with `*`, each of which stands for any characters, also none.
#[derive(Clone, Debug)]
pub(super) struct Wildcard {
    first: Box<str>,
    /// What must stand between, in this order.
    middle: Box<[Box<str>]>,
    last: Box<str>,
    /// How long a text is at least.
    shortest: usize,
}

impl Wildcard {
    /// Reads a composite key; there is none without `*`.
    pub(super) fn of(text: &str) -> Option<Wildcard> {
        let (first, rest) = text.split_once('*')?;
        let (middle, last) =
            rest.rsplit_once('*').map_or((None, rest), |(x, last)| (Some(x), last));
        let middle =
            middle.map_or_else(Box::default, |middle| middle.split('*').map(Box::from).collect());
        let shortest = text.len() - text.matches('*').count();
        Some(Wildcard { first: first.into(), middle, last: last.into(), shortest })
    }

    /// Whether it stands for the whole of a text. Takes time in proportion to its length.
    pub(super) fn matches(&self, text: &str) -> bool {
        if text.len() < self.shortest {
            return false;
        }
        let inner = text.strip_prefix(&*self.first).and_then(|text| text.strip_suffix(&*self.last));
        let Some(mut inner) = inner else { return false };
        for part in &self.middle {
            let Some(at) = inner.find(&**part) else { return false };
            inner = inner.get(at + part.len()..).unwrap_or_default();
        }
        true
    }
}
