//! Key templates.

use std::fmt;
use std::io::Write as _;

use super::facts::{Facts, KeyError};
use super::path::Path;
use super::source::Source;

/// A key template, such as `{header.x-api-key|ip}:{method}`: text, and placeholders for attributes
/// of a request.
///
/// A single placeholder yields its value unchanged. A placeholder with alternatives yields the
/// first one that has a value, prefixed with its name, as in `ip=203.0.113.7`, so that one
/// alternative cannot pose as another. With several placeholders, the bytes of the text
/// between them, and `%`, are escaped in values, as in `%3A`, so that no value can move a boundary.
///
/// ```
/// use tollgate_rules::Template;
/// assert!(Template::parse("{jwt.sub|ip}").is_ok());
/// let error = Template::parse("{method}{path}").unwrap_err();
/// assert!(error.starts_with("add text between {method} and {path}"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    pieces: Box<[Piece]>,
    /// The bytes that are escaped in values; empty with fewer than two placeholders.
    escaped: Box<[u8]>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    Text(Box<str>),
    /// One source or several alternatives.
    Value(Box<[Source]>),
}

impl Template {
    /// Parses a template. Without a placeholder all requests share one key.
    ///
    /// # Errors
    /// The text is not a template; the error states the remedy.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err(
                "a key template cannot be empty; write \"{ip}\" for a limit per client, or a word \
                 for one limit on all requests"
                    .to_owned(),
            );
        }
        let mut pieces: Vec<Piece> = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let end = rest.find(['{', '}']).unwrap_or(rest.len());
            let (plain, after) = rest.split_at(end);
            if !plain.is_empty() {
                pieces.push(Piece::Text(plain.into()));
            }
            let Some(inside) = after.strip_prefix('{') else {
                if after.is_empty() {
                    break;
                }
                return Err("unmatched }; write placeholders as in {ip}".to_owned());
            };
            let (placeholder, after) =
                inside.split_once('}').ok_or("unclosed {; write placeholders as in {ip}")?;
            let value = Piece::Value(alternatives(placeholder)?);
            if let Some(before @ Piece::Value(_)) = pieces.last() {
                return Err(format!(
                    "add text between {before} and {value}, such as a colon, so that their values \
                     cannot run together"
                ));
            }
            pieces.push(value);
            rest = after;
        }
        Template::from_pieces(pieces)
    }

    fn from_pieces(pieces: Vec<Piece>) -> Result<Self, String> {
        let values = pieces.iter().filter(|piece| matches!(piece, Piece::Value(_))).count();
        let texts = pieces.iter().filter_map(|piece| match piece {
            Piece::Text(text) if values > 1 => Some(text.bytes()),
            _ => None,
        });
        let mut escaped: Vec<u8> = texts.flatten().collect();
        if escaped.contains(&b'%') {
            return Err(
                "use other text than % between placeholders; % marks escaped bytes in values"
                    .to_owned(),
            );
        }
        if values > 1 {
            escaped.push(b'%');
        }
        escaped.sort_unstable();
        escaped.dedup();
        Ok(Template { pieces: pieces.into(), escaped: escaped.into() })
    }

    pub(super) fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// The bytes that are escaped in values.
    pub(super) fn escaped(&self) -> &[u8] {
        &self.escaped
    }

    /// The text of a template without placeholders.
    pub(super) fn literal(&self) -> Option<&str> {
        match &*self.pieces {
            [Piece::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// The sources of all placeholders.
    pub fn sources(&self) -> impl Iterator<Item = &Source> {
        self.pieces.iter().flat_map(|piece| match piece {
            Piece::Text(_) => &[][..],
            Piece::Value(sources) => sources,
        })
    }

    /// The sources of placeholders with alternatives.
    pub fn alternatives(&self) -> impl Iterator<Item = &Source> {
        self.choices().flatten()
    }

    /// The alternatives that give their values to the key of a request, one of each placeholder.
    pub fn used_alternatives<'t>(
        &'t self,
        facts: &'t Facts<'_>,
        path: &'t Path<'_>,
    ) -> impl Iterator<Item = &'t Source> {
        self.choices()
            .filter_map(|sources| sources.iter().find(|source| facts.value(source, path).is_ok()))
    }

    /// The placeholders with alternatives.
    fn choices(&self) -> impl Iterator<Item = &[Source]> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Value(sources) if sources.len() > 1 => Some(&**sources),
            Piece::Text(_) | Piece::Value(_) => None,
        })
    }

    /// Whether the template consists of this source alone, so that the key is its value.
    #[must_use]
    pub fn is_only(&self, source: &Source) -> bool {
        matches!(&*self.pieces, [Piece::Value(sources)] if **sources == *std::slice::from_ref(source))
    }

    /// The key of a request, under one reading of its path.
    ///
    /// # Errors
    /// A placeholder has no value, or the key would be longer than `max_bytes`.
    pub fn key(
        &self,
        facts: &Facts<'_>,
        path: &Path<'_>,
        max_bytes: usize,
    ) -> Result<Vec<u8>, KeyError> {
        let mut key = Vec::new();
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => key.extend_from_slice(text.as_bytes()),
                Piece::Value(sources) => self.put_value(&mut key, sources, facts, path)?,
            }
            if key.len() > max_bytes {
                return Err(KeyError::TooLong(piece.to_string(), max_bytes));
            }
        }
        Ok(key)
    }

    /// Appends the first alternative that has a value.
    fn put_value(
        &self,
        key: &mut Vec<u8>,
        sources: &[Source],
        facts: &Facts<'_>,
        path: &Path<'_>,
    ) -> Result<(), KeyError> {
        for source in sources {
            let value = match facts.value(source, path) {
                Ok(value) => value,
                Err(KeyError::Missing(_)) => continue,
                Err(other) => return Err(other),
            };
            if sources.len() > 1 {
                // Writing to a `Vec` does not fail.
                let _ = write!(key, "{source}=");
            }
            for byte in value.iter() {
                if self.escaped.contains(byte) {
                    let _ = write!(key, "%{byte:02X}");
                } else {
                    key.push(*byte);
                }
            }
            return Ok(());
        }
        Err(KeyError::Missing(names(sources)))
    }
}

fn names(sources: &[Source]) -> String {
    sources.iter().map(Source::to_string).collect::<Vec<_>>().join("|")
}

fn alternatives(placeholder: &str) -> Result<Box<[Source]>, String> {
    let mut sources: Vec<Source> = Vec::new();
    for text in placeholder.split('|') {
        let source = Source::parse(text.trim())?;
        if sources.contains(&source) {
            return Err(format!("{source} is listed twice; remove one of the two"));
        }
        sources.push(source);
    }
    Ok(sources.into())
}

impl fmt::Display for Piece {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Piece::Text(text) => f.write_str(text),
            Piece::Value(sources) => write!(f, "{{{}}}", names(sources)),
        }
    }
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.pieces.iter().try_for_each(|piece| piece.fmt(f))
    }
}
