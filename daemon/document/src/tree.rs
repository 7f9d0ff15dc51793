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

    /// A mapping with this node as its only field.
    #[must_use]
    pub fn in_field(self, name: &str) -> Node {
        let origin = self.origin.clone();
        let name = Name { text: name.to_owned(), origin: origin.clone(), quoted: false };
        Node { origin, body: Body::Fields(vec![(name, self)]), quoted: false }
    }

    /// The number of nodes, and the depth.
    pub(crate) fn size(&self) -> (usize, usize) {
        let (mut nodes, mut depth) = (1, 1);
        let mut add = |inner: &Node| {
            let size = inner.size();
            (nodes, depth) = (nodes + size.0, depth.max(size.1 + 1));
        };
        match &self.body {
            Body::Nothing | Body::Text(_) => {}
            Body::List(all) => all.iter().for_each(add),
            Body::Fields(all) => all.iter().for_each(|(_, node)| add(node)),
        }
        (nodes, depth)
    }
}
