//! The names to look up, as a tree of objects.

use std::cmp::Ordering;

use crate::log::escape::fold;

/// The names to look up. Node 0 is the object of a line.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    nodes: Vec<Node>,
}

#[derive(Clone, Debug, Default)]
struct Node {
    /// Children by folded name, ordered by length and then by letters, so that a search mostly compares
    /// lengths.
    children: Vec<(Vec<u8>, usize)>,
    /// The slots that a value here belongs to, and the rank of this name for each.
    slots: Vec<(usize, usize)>,
}

impl Tree {
    pub(super) const ROOT: usize = 0;

    /// `places` contains the names for each slot, best first.
    pub(super) fn new(places: &[Vec<String>]) -> Self {
        let mut tree = Tree { nodes: vec![Node::default()] };
        for (slot, places) in places.iter().enumerate() {
            for (rank, place) in places.iter().enumerate() {
                // Some logs write a path through objects as one name with dots.
                tree.insert([place.as_str()].into_iter(), slot, rank);
                tree.insert(place.split('.'), slot, rank);
            }
        }
        tree
    }

    fn insert<'a>(&mut self, path: impl Iterator<Item = &'a str>, slot: usize, rank: usize) {
        let mut at = Self::ROOT;
        for name in path {
            let name: Vec<u8> = name.bytes().map(fold).collect();
            let new = self.nodes.len();
            let node = &mut self.nodes[at];
            at = match node.children.binary_search_by(|child| order(&child.0, &name)) {
                Ok(found) => node.children[found].1,
                Err(place) => {
                    node.children.insert(place, (name, new));
                    self.nodes.push(Node::default());
                    new
                }
            };
        }
        let slots = &mut self.nodes[at].slots;
        if !slots.contains(&(slot, rank)) {
            slots.push((slot, rank));
        }
    }

    /// The child of a node with this name.
    pub(super) fn child(&self, node: usize, name: &str) -> Option<usize> {
        let children = &self.nodes[node].children;
        let found = children.binary_search_by(|child| order(&child.0, name.as_bytes())).ok()?;
        Some(children[found].1)
    }

    pub(super) fn has_children(&self, node: usize) -> bool {
        !self.nodes[node].children.is_empty()
    }

    pub(super) fn slots(&self, node: usize) -> &[(usize, usize)] {
        &self.nodes[node].slots
    }
}

/// Compares a folded name with any name.
fn order(folded: &[u8], name: &[u8]) -> Ordering {
    let letters = || folded.iter().copied().cmp(name.iter().copied().map(fold));
    folded.len().cmp(&name.len()).then_with(letters)
}
