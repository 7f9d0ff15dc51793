//! The configuration as it is written: texts, each with where it comes from, none of them
//! understood yet.

use std::ops::Range;
use std::sync::Arc;

/// Something written, with where it comes from.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) origin: Origin,
    pub(crate) body: Body,
    /// Whether it is a text that stands in quotes or in a block, and so can be nothing else.
    pub(crate) quoted: bool,
}

#[derive(Clone, Debug)]
pub(crate) enum Body {
    /// `null`, or nothing at all.
    Nothing,
    Text(String),
    List(Vec<Node>),
    /// In the order in which they are written.
    Fields(Vec<(Name, Node)>),
}

/// A name, with where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Name {
    pub(crate) text: String,
    pub(crate) origin: Origin,
    /// As of a [`Node`].
    pub(crate) quoted: bool,
}

/// Where something written comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The table of fields.
    Default,
    /// The sample policies.
    Sample,
    /// The file.
    File(Span),
    /// An environment variable.
    Variable(Arc<str>),
    /// A flag of the command line.
    Flag(&'static str),
}

/// A part of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    /// From 1.
    pub(crate) line: usize,
    /// In characters, from 1.
    pub(crate) column: usize,
    pub(crate) bytes: Range<usize>,
}

impl Node {
    pub(super) fn text(text: impl Into<String>, origin: Origin) -> Self {
        Node { origin, body: Body::Text(text.into()), quoted: false }
    }

    pub(super) fn nothing(origin: Origin) -> Self {
        Node { origin, body: Body::Nothing, quoted: false }
    }

    /// What is written under a name.
    pub(super) fn get(&self, name: &str) -> Option<&Node> {
        let Body::Fields(fields) = &self.body else { return None };
        fields.iter().find(|(x, _)| x.text == name).map(|(_, x)| x)
    }

    /// Writes over what stands at a path. A value that stands in the way stays, for it is a
    /// mistake that is reported.
    pub(super) fn set(&mut self, path: &[&str], node: Node) {
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

    /// How many nodes this is, and how deep.
    pub(super) fn size(&self) -> (usize, usize) {
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
