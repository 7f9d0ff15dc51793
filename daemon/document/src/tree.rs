//! The parsed document: uninterpreted texts, each with its origin.

use std::ops::Range;
use std::sync::Arc;

/// A value with its origin.
#[derive(Clone, Debug)]
pub struct Node {
    /// Where the value comes from.
    pub origin: Origin,
    /// The value.
    pub body: Body,
    /// Whether the value is quoted or a block scalar, and therefore a string.
    pub quoted: bool,
}

/// The content of a node.
#[derive(Clone, Debug)]
pub enum Body {
    /// `null` or an empty value.
    Nothing,
    /// A scalar, as written.
    Text(String),
    /// A sequence.
    List(Vec<Node>),
    /// A mapping, in document order.
    Fields(Vec<(Name, Node)>),
}

/// The name of a field, with its origin.
#[derive(Clone, Debug)]
pub struct Name {
    /// The name.
    pub text: String,
    /// Where the name is written.
    pub origin: Origin,
    /// Whether the name is quoted; see [`Node::quoted`].
    pub quoted: bool,
}

/// The source of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The default in the schema.
    Default,
    /// The built-in sample policies.
    Sample,
    /// The configuration file.
    File(Span),
    /// An environment variable.
    Variable(Arc<str>),
    /// A command-line flag.
    Flag(&'static str),
}

/// A range of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// The first line, counted from 1.
    pub line: usize,
    /// The first column in characters, counted from 1.
    pub column: usize,
    /// The range in bytes.
    pub bytes: Range<usize>,
}

impl Node {
    /// A plain scalar.
    pub fn text(text: impl Into<String>, origin: Origin) -> Self {
        Node { origin, body: Body::Text(text.into()), quoted: false }
    }

    /// An empty value.
    pub fn nothing(origin: Origin) -> Self {
        Node { origin, body: Body::Nothing, quoted: false }
    }

    /// The value of a field, if this is a mapping that has it.
    pub fn get(&self, name: &str) -> Option<&Node> {
        let Body::Fields(fields) = &self.body else { return None };
        fields.iter().find(|(x, _)| x.text == name).map(|(_, x)| x)
    }

    /// Sets the value at a path, creating mappings on the way. A value of another shape on the way is
    /// left alone: the schema check reports it.
    pub fn set(&mut self, path: &[&str], node: Node) {
        let Some((first, rest)) = path.split_first() else {
            *self = node;
            return;
        };
        if matches!(self.body, Body::Nothing) {
            self.body = Body::Fields(Vec::new());
        }
        let Body::Fields(fields) = &mut self.body else { return };
        if let Some((_, inner)) = fields.iter_mut().find(|(x, _)| x.text == *first) {
            inner.set(rest, node);
            return;
        }
        let origin = node.origin.clone();
        let name = Name { text: (*first).to_owned(), origin, quoted: false };
        let mut inner = Node::nothing(node.origin.clone());
        inner.set(rest, node);
        fields.push((name, inner));
    }

    /// The number of nodes, and the depth.
    pub fn size(&self) -> (usize, usize) {
        let inner = |all: &mut dyn Iterator<Item = &Node>| {
            let sizes = all.map(Node::size);
            let (nodes, depth) = sizes.fold((0, 0), |sum, x| (sum.0 + x.0, sum.1.max(x.1)));
            (nodes + 1, depth + 1)
        };
        match &self.body {
            Body::Nothing | Body::Text(_) => (1, 1),
            Body::List(all) => inner(&mut all.iter()),
            Body::Fields(all) => inner(&mut all.iter().map(|(_, x)| x)),
        }
    }
}
