//! From the text of a file to a tree.
//!
//! The parser gives events; a value that deserialized would have lost how it was written (`+5`,
//! `1.50`, `0x10`) and where it ends, and stopped at the first mistake.

use std::collections::{HashMap, HashSet};

use granit_parser::{Event, Parser, ScalarStyle, ScanError, Tag};

use super::error::{Complaints, ConfigError};
use super::tree::{Body, Name, Node, Origin, Span};

/// How much of a file is read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Most {
    /// The most values, with those that aliases repeat.
    pub(crate) values: usize,
    /// How deep values may be in each other.
    pub(crate) depth: usize,
    /// What to do where there are more values.
    pub(crate) remedy: &'static str,
}

/// Of the configuration, which has 7 levels.
const CONFIGURATION: Most =
    Most { values: 250_000, depth: 32, remedy: "many overrides go into overrides_file" };

/// Reads a text. Names that are there twice are complained of; the first holds.
///
/// # Errors
/// It is not YAML, or more of it than is read.
pub(super) fn parse(text: &str, complaints: &Complaints) -> Result<Node, ConfigError> {
    parse_at_most(CONFIGURATION, text, complaints)
}

/// Reads a text of this much at most.
///
/// # Errors
/// It is not YAML, or more of it than is read.
pub(crate) fn parse_at_most(
    most: Most,
    text: &str,
    complaints: &Complaints,
) -> Result<Node, ConfigError> {
    let options = granit_parser::options! {
        flow_nesting_limit: most.depth,
        block_nesting_limit: most.depth,
    };
    let mut builder = Builder::new(most, text, complaints);
    for event in Parser::new_from_str_with_options(text, options) {
        let (event, span) = event.map_err(|error| not_yaml(&error, text, most))?;
        builder.take(event, span_of(&span))?;
    }
    Ok(builder.root.unwrap_or_else(|| Node::nothing(Origin::File(start()))))
}

fn start() -> Span {
    Span { line: 1, column: 1, bytes: 0..0 }
}

fn span_of(span: &granit_parser::Span) -> Span {
    let marker = span.start;
    let start = marker.byte_offset().unwrap_or_default();
    let end = span.end.byte_offset().unwrap_or(start).max(start);
    Span { line: marker.line().max(1), column: marker.col() + 1, bytes: start..end }
}

fn not_yaml(error: &ScanError, text: &str, most: Most) -> ConfigError {
    let marker = error.marker();
    let at = marker.byte_offset().unwrap_or(text.len());
    let span = Span { line: marker.line().max(1), column: marker.col() + 1, bytes: at..at };
    let message = match error.kind() {
        granit_parser::ErrorKind::RecursionLimitExceeded => too_deep(most),
        kind => kind.to_string(),
    };
    ConfigError::new(message).at(Origin::File(span))
}

fn too_deep(most: Most) -> String {
    format!("values may be in each other at most {} deep", most.depth)
}

struct Builder<'a> {
    most: Most,
    text: &'a str,
    complaints: &'a Complaints,
    open: Vec<Open>,
    /// What aliases may name, by the parser's number.
    anchored: HashMap<usize, Node>,
    /// How many values there are.
    values: usize,
    root: Option<Node>,
}

/// A list or fields whose end has not come.
struct Open {
    span: Span,
    anchor: usize,
    body: OpenBody,
}

enum OpenBody {
    List(Vec<Node>),
    /// With the name whose value comes next.
    Fields(Vec<(Name, Node)>, Option<Name>),
}

impl<'a> Builder<'a> {
    fn new(most: Most, text: &'a str, complaints: &'a Complaints) -> Self {
        let (open, anchored) = (Vec::new(), HashMap::new());
        Builder { most, text, complaints, open, anchored, values: 0, root: None }
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
                let message = "a second document begins here; only one is read";
                Err(ConfigError::new(message).at(Origin::File(span)))
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

    /// Where a list or fields end: what is written in lines ends with its last value.
    fn end_of(&self, start: &Span, end: &Span) -> usize {
        let text = self.text.get(start.bytes.start..end.bytes.end).unwrap_or_default();
        start.bytes.start + text.trim_end().len()
    }

    /// Repeats what an alias names.
    fn repeat(&mut self, anchor: usize, span: Span) -> Result<(), ConfigError> {
        let Some(node) = self.anchored.get(&anchor) else {
            let message = "an alias cannot stand inside what it names";
            return Err(ConfigError::new(message).at(Origin::File(span)));
        };
        let (values, depth) = node.size();
        if self.open.len() + depth > self.most.depth {
            return Err(ConfigError::new(too_deep(self.most)).at(Origin::File(span)));
        }
        let (body, quoted) = (node.body.clone(), node.quoted);
        self.count(values, &span)?;
        self.add(Node { origin: Origin::File(span), body, quoted }, 0)
    }

    fn count(&mut self, more: usize, at: &Span) -> Result<(), ConfigError> {
        self.values += more;
        let Most { values, remedy, .. } = self.most;
        if self.values <= values {
            return Ok(());
        }
        let message =
            format!("there are more than {values} values, counting what aliases repeat; {remedy}");
        Err(ConfigError::new(message).at(Origin::File(at.clone())))
    }

    fn add(&mut self, node: Node, anchor: usize) -> Result<(), ConfigError> {
        if let Origin::File(span) = &node.origin {
            // What may be repeated is kept once more.
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

    /// Fields without those that are there twice, and with those that `<<` brings.
    fn merged(&self, fields: Vec<(Name, Node)>) -> Vec<(Name, Node)> {
        let mut seen = HashSet::with_capacity(fields.len());
        let mut all = Vec::with_capacity(fields.len());
        let mut brought = Vec::new();
        for (name, node) in fields {
            if name.text == "<<" {
                brought.push(node);
            } else if seen.insert(name.text.clone()) {
                all.push((name, node));
            } else {
                let message = format!("{} is there twice; leave one of them out", name.text);
                self.complaints.add(ConfigError::new(message).at(name.origin));
            }
        }
        for (name, node) in brought.into_iter().flat_map(fields_of) {
            if seen.insert(name.text.clone()) {
                all.push((name, node));
            }
        }
        all
    }
}

/// The fields that `<<` names, or a list of such; whatever else it names is of no use.
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
            Err(ConfigError::new("write a name here, not a list or fields").at(origin))
        }
    }
}

fn refuse_tag(tag: Option<&Tag>, span: &Span) -> Result<(), ConfigError> {
    match tag {
        Some(tag) if !tag.is_yaml_core_schema() => {
            let message = "tags such as !name mean nothing here; leave it out";
            Err(ConfigError::new(message).at(Origin::File(span.clone())))
        }
        _ => Ok(()),
    }
}
