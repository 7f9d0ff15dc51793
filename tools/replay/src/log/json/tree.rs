//! The names that are looked for, as a tree of objects.

use std::cmp::Ordering;

use crate::log::escape::fold;

/// The names that are looked for. Node 0 is the object of a line.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    nodes: Vec<Node>,
}

#[derive(Clone, Debug, Default)]
struct Node {
    /// By name, folded; in the order of length and then of letters, so that most of those that are
    /// passed in a search are known by their length.
    children: Vec<(Vec<u8>, usize)>,
    /// For which slots a value here is one, and how good a place this is for it.
    slots: Vec<(usize, usize)>,
}

impl Tree {
    pub(super) const ROOT: usize = 0;

    /// `places` has where each slot's value may be, best first.
    pub(super) fn new(places: &[Vec<String>]) -> Self {
        let mut tree = Tree { nodes: vec![Node::default()] };
        for (slot, places) in places.iter().enumerate() {
            for (rank, place) in places.iter().enumerate() {
                // Some logs write a path through objects as one name with points.
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
            let Some(node) = self.nodes.get_mut(at) else { return };
            at = match node.children.binary_search_by(|child| order(&child.0, &name)) {
                Ok(found) => node.children.get(found).map_or(Self::ROOT, |child| child.1),
                Err(place) => {
                    node.children.insert(place, (name, new));
                    self.nodes.push(Node::default());
                    new
                }
            };
        }
        if let Some(node) = self.nodes.get_mut(at)
            && !node.slots.contains(&(slot, rank))
        {
            node.slots.push((slot, rank));
        }
    }

    /// The node of a name in an object.
    pub(super) fn child(&self, node: usize, name: &str) -> Option<usize> {
        let children = &self.nodes.get(node)?.children;
        let found = children.binary_search_by(|child| order(&child.0, name.as_bytes())).ok()?;
        children.get(found).map(|child| child.1)
    }

    pub(super) fn has_children(&self, node: usize) -> bool {
        self.nodes.get(node).is_some_and(|node| !node.children.is_empty())
    }

    pub(super) fn slots(&self, node: usize) -> &[(usize, usize)] {
        self.nodes.get(node).map_or(&[], |node| &node.slots)
    }
}

/// How a folded name stands to any other.
fn order(folded: &[u8], name: &[u8]) -> Ordering {
    let letters = || folded.iter().copied().cmp(name.iter().copied().map(fold));
    folded.len().cmp(&name.len()).then_with(letters)
}
