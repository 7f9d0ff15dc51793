//! The YAML parser: events of the library to a tree of nodes.
//!
//! The tree is built from events because a deserialized value has lost its spelling (`+5`, `1.50`,
//! `0x10`) and its position, and deserialization stops at the first mistake.

use std::collections::{HashMap, HashSet};

use granit_parser::{Event, Parser, ScalarStyle, ScanError, Tag};

use crate::error::{ConfigError, Diagnostics};
use crate::tree::{Body, Name, Node, Origin, Span};

/// Bounds on the size of a document, so that a small file with aliases cannot fill the memory.
#[derive(Clone, Copy, Debug)]
pub struct YamlLimits {
    /// The largest number of values, counting those that aliases repeat.
    pub values: usize,
    /// The deepest nesting.
    pub depth: usize,
    /// The remedy that is shown when there are too many values.
    pub remedy: &'static str,
}

/// Parses a YAML text into a tree. A repeated name is reported to `diagnostics`; its first value is
/// kept.
///
/// # Errors
/// The text is not YAML, or exceeds `limits`.
pub fn parse(
    limits: YamlLimits,
    text: &str,
    diagnostics: &Diagnostics,
) -> Result<Node, ConfigError> {
    let options = granit_parser::options! {
        flow_nesting_limit: limits.depth,
        block_nesting_limit: limits.depth,
    };
    let mut builder = Builder::new(limits, text, diagnostics);
    for event in Parser::new_from_str_with_options(text, options) {
        let (event, span) = event.map_err(|error| not_yaml(&error, text, limits))?;
        builder.take(event, span_of(&span))?;
    }
    let start = Span { line: 1, column: 1, bytes: 0..0 };
    Ok(builder.root.unwrap_or_else(|| Node::nothing(Origin::File(start))))
}

fn error_at(span: &Span, message: impl Into<String>) -> ConfigError {
    ConfigError::new(message).with_origin(Origin::File(span.clone()))
}

fn span_of(span: &granit_parser::Span) -> Span {
    let marker = span.start;
    // The parser tracks byte offsets for text input.
    let start = marker.byte_offset().unwrap_or_default();
    let end = span.end.byte_offset().unwrap_or(start).max(start);
    Span { line: marker.line().max(1), column: marker.col() + 1, bytes: start..end }
}

fn not_yaml(error: &ScanError, text: &str, limits: YamlLimits) -> ConfigError {
    let marker = error.marker();
    let at = marker.byte_offset().unwrap_or(text.len());
    let span = Span { line: marker.line().max(1), column: marker.col() + 1, bytes: at..at };
    let message = match error.kind() {
        granit_parser::ErrorKind::RecursionLimitExceeded => too_deep(limits),
        kind => kind.to_string(),
    };
    error_at(&span, message)
}

fn too_deep(limits: YamlLimits) -> String {
    format!("values may be nested at most {} deep", limits.depth)
}

struct Builder<'a> {
    limits: YamlLimits,
    text: &'a str,
    diagnostics: &'a Diagnostics,
    open: Vec<Open>,
    /// Anchored nodes by the parser's anchor number.
    anchored: HashMap<usize, Node>,
    /// The number of values so far.
    values: usize,
    root: Option<Node>,
}

/// A list or mapping that is still being parsed.
struct Open {
    span: Span,
    anchor: usize,
    body: OpenBody,
}

enum OpenBody {
    List(Vec<Node>),
    /// Complete fields, and the name whose value comes next.
    Fields(Vec<(Name, Node)>, Option<Name>),
}

impl<'a> Builder<'a> {
    fn new(limits: YamlLimits, text: &'a str, diagnostics: &'a Diagnostics) -> Self {
        let (open, anchored) = (Vec::new(), HashMap::new());
        Builder { limits, text, diagnostics, open, anchored, values: 0, root: None }
    }

    fn take(&mut self, event: Event<'_>, span: Span) -> Result<(), ConfigError> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                refuse_tag(tag.as_deref(), &span)?;
                let quoted = style != ScalarStyle::Plain
                    || tag.is_some_and(|tag| tag.is_yaml_core_schema_tag("str"));
                let is_nothing = style == ScalarStyle::Plain
                    && matches!(&*text, "" | "~" | "null" | "Null" | "NULL");
                let body = if is_nothing { Body::Nothing } else { Body::Text(text.into_owned()) };
                self.add(Node { origin: Origin::File(span), body, quoted }, anchor)
            }
            Event::SequenceStart(_, anchor, tag) => {
                refuse_tag(tag.as_deref(), &span)?;
                self.open.push(Open { span, anchor, body: OpenBody::List(Vec::new()) });
                Ok(())
            }
            Event::MappingStart(_, anchor, tag) => {
                refuse_tag(tag.as_deref(), &span)?;
                self.open.push(Open { span, anchor, body: OpenBody::Fields(Vec::new(), None) });
                Ok(())
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(&span),
            Event::Alias(anchor) => self.repeat(anchor, span),
            Event::DocumentStart(..) if self.root.is_some() => {
                Err(error_at(&span, "a second document begins here; write a single document"))
            }
            _ => Ok(()),
        }
    }

    fn close(&mut self, end: &Span) -> Result<(), ConfigError> {
        let Some(Open { mut span, anchor, body }) = self.open.pop() else { return Ok(()) };
        span.bytes.end = self.end_of(&span, end);
        let body = match body {
            OpenBody::List(all) => Body::List(all),
            OpenBody::Fields(all, _) => Body::Fields(self.merged(all)),
        };
        self.add(Node { origin: Origin::File(span), body, quoted: false }, anchor)
    }

    /// The end of a list or mapping. In block style that is the end of its last value.
    fn end_of(&self, start: &Span, end: &Span) -> usize {
        let text = self.text.get(start.bytes.start..end.bytes.end).unwrap_or_default();
        start.bytes.start + text.trim_end().len()
    }

    /// Adds a copy of the node that an alias names.
    fn repeat(&mut self, anchor: usize, span: Span) -> Result<(), ConfigError> {
        let Some(node) = self.anchored.get(&anchor) else {
            let message = "an alias cannot be used inside the value that it names";
            return Err(error_at(&span, message));
        };
        let (values, depth) = node.size();
        if self.open.len() + depth > self.limits.depth {
            return Err(error_at(&span, too_deep(self.limits)));
        }
        let (body, quoted) = (node.body.clone(), node.quoted);
        self.count(values, &span)?;
        self.add(Node { origin: Origin::File(span), body, quoted }, 0)
    }

    fn count(&mut self, more: usize, at: &Span) -> Result<(), ConfigError> {
        self.values += more;
        let YamlLimits { values, remedy, .. } = self.limits;
        if self.values <= values {
            return Ok(());
        }
        let message = format!("more than {values} values, counting repeated aliases; {remedy}");
        Err(error_at(at, message))
    }

    fn add(&mut self, node: Node, anchor: usize) -> Result<(), ConfigError> {
        if let Origin::File(span) = &node.origin {
            // An anchored node is stored a second time.
            let values = if anchor > 0 { node.size().0 + 1 } else { 1 };
            self.count(values, span)?;
        }
        if anchor > 0 {
            self.anchored.insert(anchor, node.clone());
        }
        match self.open.last_mut().map(|x| &mut x.body) {
            None => self.root = Some(node),
            Some(OpenBody::List(all)) => all.push(node),
            Some(OpenBody::Fields(all, next)) => match next.take() {
                Some(name) => all.push((name, node)),
                None => *next = Some(name_of(node)?),
            },
        }
        Ok(())
    }

    /// Reports and removes duplicate fields, and adds the fields of merge keys (`<<`).
    fn merged(&self, fields: Vec<(Name, Node)>) -> Vec<(Name, Node)> {
        let mut seen = HashSet::with_capacity(fields.len());
        let mut all = Vec::with_capacity(fields.len());
        let mut merged = Vec::new();
        for (name, node) in fields {
            if name.text == "<<" {
                merged.push(node);
            } else if seen.insert(name.text.clone()) {
                all.push((name, node));
            } else {
                let message = format!("{} is defined twice; remove one of the two", name.text);
                self.diagnostics.add(ConfigError::new(message).with_origin(name.origin));
            }
        }
        for (name, node) in merged.into_iter().flat_map(fields_of) {
            if seen.insert(name.text.clone()) {
                all.push((name, node));
            }
        }
        all
    }
}

/// The fields of a merge key's value: a mapping or a list of mappings. Other values are ignored.
fn fields_of(node: Node) -> Vec<(Name, Node)> {
    match node.body {
        Body::Fields(all) => all,
        Body::List(all) => all.into_iter().flat_map(fields_of).collect(),
        Body::Nothing | Body::Text(_) => Vec::new(),
    }
}

fn name_of(node: Node) -> Result<Name, ConfigError> {
    let Node { origin, body, quoted } = node;
    match body {
        Body::Text(text) => Ok(Name { text, origin, quoted }),
        Body::Nothing => Ok(Name { text: "null".to_owned(), origin, quoted }),
        Body::List(_) | Body::Fields(_) => {
            Err(ConfigError::new("write a name here, not a list or mapping").with_origin(origin))
        }
    }
}

fn refuse_tag(tag: Option<&Tag>, span: &Span) -> Result<(), ConfigError> {
    match tag {
        Some(tag) if !tag.is_yaml_core_schema() => {
            Err(error_at(span, "tags such as !name are not supported; remove the tag"))
        }
        _ => Ok(()),
    }
}
