//! Composite keys with `*`.

/// A composite key with `*`, each of which matches any text.
#[derive(Clone, Debug)]
pub(super) struct Wildcard {
    first: Box<str>,
    /// The parts between, in order.
    middle: Box<[Box<str>]>,
    last: Box<str>,
    /// The minimum length of a matching text.
    shortest: usize,
}

impl Wildcard {
    /// Parses a composite key; `None` without `*`.
    pub(super) fn parse(text: &str) -> Option<Wildcard> {
        let (first, rest) = text.split_once('*')?;
        let (middle, last) =
            rest.rsplit_once('*').map_or((None, rest), |(x, last)| (Some(x), last));
        let middle =
            middle.map_or_else(Box::default, |middle| middle.split('*').map(Box::from).collect());
        let shortest = text.len() - text.matches('*').count();
        Some(Wildcard { first: first.into(), middle, last: last.into(), shortest })
    }

    /// Whether a text matches, in time linear in its length.
    pub(super) fn matches(&self, text: &str) -> bool {
        if text.len() < self.shortest {
            return false;
        }
        let inner = text.strip_prefix(&*self.first).and_then(|text| text.strip_suffix(&*self.last));
        let Some(mut inner) = inner else { return false };
        for part in &self.middle {
            let Some(at) = inner.find(&**part) else { return false };
            inner = inner.split_at(at + part.len()).1;
        }
        true
    }
}
