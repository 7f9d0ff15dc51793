//! Templates of keys.

use std::fmt;

use super::facts::{Facts, KeyError};
use super::path::Path;
use super::source::Source;

/// A template of a key, such as `{header.x-api-key|ip}:{method}`: text, and placeholders of what a
/// request says.
///
/// A placeholder that stands alone gives its value as it is. One with alternatives gives the first
/// that has a value, with its name before it, as `ip=203.0.113.7`, so that none can pose as another.
/// Where there are several placeholders, the bytes of the text between them, and `%`, are escaped
/// within their values as `%3A`, so that no value can move a boundary.
///
/// ```
/// use tollgate_rules::Template;
/// assert!(Template::parse("{jwt.sub|ip}").is_ok());
/// let error = Template::parse("{method}{path}").unwrap_err();
/// assert!(error.starts_with("write some text between {method} and {path}"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    pieces: Box<[Piece]>,
    /// What is escaped within values; nothing where there is one placeholder only.
    escaped: Box<[u8]>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(Box<str>),
    /// One source, or several as alternatives.
    Value(Box<[Source]>),
}

impl Template {
    /// Reads a template. Without a placeholder it is the same key for all.
    ///
    /// # Errors
    /// It is none; the error says what to write.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err(
                "write who is limited, such as \"{ip}\", or a word for all as one".to_owned()
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
                return Err("write { before what } ends, as in {ip}".to_owned());
            };
            let (placeholder, after) =
                inside.split_once('}').ok_or("write } after the placeholder, as in {ip}")?;
            let value = Piece::Value(alternatives(placeholder)?);
            if let Some(before @ Piece::Value(_)) = pieces.last() {
                return Err(format!(
                    "write some text between {before} and {value}, such as a colon; else nobody \
                     could tell where one ends"
                ));
            }
            pieces.push(value);
            rest = after;
        }
        Template::of(pieces)
    }

    fn of(pieces: Vec<Piece>) -> Result<Self, String> {
        let values = pieces.iter().filter(|piece| matches!(piece, Piece::Value(_))).count();
        let mut escaped = Vec::new();
        if values > 1 {
            let texts = pieces.iter().filter_map(|piece| match piece {
                Piece::Text(text) => Some(text.bytes()),
                Piece::Value(_) => None,
            });
            escaped = texts.flatten().chain([b'%']).collect();
            if escaped.iter().filter(|escaped| **escaped == b'%').count() > 1 {
                return Err(
                    "write other text than % between placeholders; it escapes what values \
                            may not hold"
                        .to_owned(),
                );
            }
            escaped.sort_unstable();
            escaped.dedup();
        }
        Ok(Template { pieces: pieces.into(), escaped: escaped.into() })
    }

    /// All that it is made of.
    pub fn sources(&self) -> impl Iterator<Item = &Source> {
        self.pieces.iter().flat_map(|piece| match piece {
            Piece::Text(_) => &[][..],
            Piece::Value(sources) => sources,
        })
    }

    /// Whether it is this source and nothing else, so that the key is the source's value.
    #[must_use]
    pub fn is_only(&self, source: &Source) -> bool {
        matches!(&*self.pieces, [Piece::Value(sources)] if **sources == *std::slice::from_ref(source))
    }

    /// The key of a request whose path is read as this.
    ///
    /// # Errors
    /// A placeholder has no value, or the key would be longer than `most` bytes.
    pub fn key(&self, facts: &Facts<'_>, path: &Path, most: usize) -> Result<Vec<u8>, KeyError> {
        let mut key = Vec::new();
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => key.extend_from_slice(text.as_bytes()),
                Piece::Value(sources) => self.put_value(&mut key, sources, facts, path)?,
            }
            if key.len() > most {
                return Err(KeyError::TooLong(piece.to_string(), most));
            }
        }
        Ok(key)
    }

    /// Appends the first of some alternatives that has a value.
    fn put_value(
        &self,
        key: &mut Vec<u8>,
        sources: &[Source],
        facts: &Facts<'_>,
        path: &Path,
    ) -> Result<(), KeyError> {
        for source in sources {
            let value = match facts.value(source, path) {
                Ok(value) => value,
                Err(KeyError::Missing(_)) => continue,
                Err(other) => return Err(other),
            };
            if sources.len() > 1 {
                key.extend_from_slice(format!("{source}=").as_bytes());
            }
            for byte in value.iter() {
                if self.escaped.contains(byte) {
                    key.extend_from_slice(format!("%{byte:02X}").as_bytes());
                } else {
                    key.push(*byte);
                }
            }
            return Ok(());
        }
        let names: Vec<_> = sources.iter().map(Source::to_string).collect();
        Err(KeyError::Missing(names.join("|")))
    }
}

fn alternatives(placeholder: &str) -> Result<Box<[Source]>, String> {
    let mut sources: Vec<Source> = Vec::new();
    for text in placeholder.split('|') {
        let source = Source::parse(text.trim())?;
        if sources.contains(&source) {
            return Err(format!("leave {source} out once; it is there twice"));
        }
        sources.push(source);
    }
    Ok(sources.into())
}

impl fmt::Display for Piece {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Piece::Text(text) => f.write_str(text),
            Piece::Value(sources) => {
                let names: Vec<_> = sources.iter().map(Source::to_string).collect();
                write!(f, "{{{}}}", names.join("|"))
            }
        }
    }
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.pieces.iter().try_for_each(|piece| piece.fmt(f))
    }
}
