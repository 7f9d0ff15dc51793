//! The validated configuration: scalars are parsed, and every value has its origin.

use tollgate_document::{Name, Origin};

use super::schema::Value;

/// A validated value.
pub(super) struct Entry {
    pub(super) origin: Origin,
    pub(super) content: Content,
}

pub(super) enum Content {
    /// `null` or an empty value.
    Nothing,
    /// A scalar: the text as written, and its value.
    Scalar(String, Value),
    List(Vec<Entry>),
    /// The fields of a section or the entries of a mapping, in document order.
    Fields(Vec<(Name, Entry)>),
    /// An invalid value. It has been reported.
    Invalid,
}

impl Entry {
    /// The value of a field that is present and not null.
    pub(super) fn get(&self, name: &str) -> Option<&Entry> {
        let Content::Fields(fields) = &self.content else { return None };
        let (_, entry) = fields.iter().find(|(field, _)| field.text == name)?;
        (!matches!(entry.content, Content::Nothing)).then_some(entry)
    }

    /// Sets the value at a path, and creates missing sections. An invalid value on the way stays.
    pub(super) fn set(&mut self, path: &[&str], entry: Entry) {
        let Some((first, rest)) = path.split_first() else {
            *self = entry;
            return;
        };
        if matches!(self.content, Content::Nothing) {
            self.content = Content::Fields(Vec::new());
        }
        let Content::Fields(fields) = &mut self.content else { return };
        if let Some((_, inner)) = fields.iter_mut().find(|(name, _)| name.text == *first) {
            inner.set(rest, entry);
            return;
        }
        let origin = entry.origin.clone();
        let name = Name { text: (*first).to_owned(), origin: origin.clone(), quoted: false };
        let mut inner = Entry { origin, content: Content::Nothing };
        inner.set(rest, entry);
        fields.push((name, inner));
    }
}
