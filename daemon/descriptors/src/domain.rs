//! Domains: trees of descriptors, and the lookup of rules in them.

use std::borrow::Cow;
use std::collections::HashMap;

use foldhash::fast::FixedState;

use super::limits::OverrideRules;
use super::rule::Rule;

/// A domain.
#[derive(Debug)]
pub(super) struct Domain {
    pub(super) name: Box<str>,
    /// Whether keys begin with the domain, because the name of its policies does not identify it.
    pub(super) prefixes_keys: bool,
    /// The root, followed by the descriptors; each parent precedes its children.
    pub(super) nodes: Vec<Node>,
    /// The rules for limits that requests supply.
    pub(super) overrides: OverrideRules,
}

/// A descriptor in the configuration.
#[derive(Debug, Default)]
pub(super) struct Node {
    /// The domain and the composite keys on the path to the node, joined by `.`.
    pub(super) path: Box<str>,
    /// The composite key: `key` or `key_value`.
    pub(super) composite: Box<str>,
    pub(super) rule: Option<Rule>,
    pub(super) value_to_metric: bool,
    pub(super) share_threshold: bool,
    /// The children by composite key. Requests do not add any, so the hash needs no random seed.
    pub(super) children: HashMap<Box<[u8]>, usize, FixedState>,
    /// The children with `*`, in the order of the file.
    pub(super) wildcards: Vec<(Wildcard, usize)>,
}

/// How an entry of a request matches a descriptor.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MatchKind {
    /// By key and value.
    Exact,
    /// By a `*`.
    Wildcard,
    /// By the key alone.
    Key,
}

/// The rule for a request.
#[derive(Debug)]
pub(super) struct Found<'a> {
    pub(super) rule: &'a Rule,
    /// The replacements of values that share a counter, by the index of the entry.
    pub(super) shared: Vec<(usize, &'a str)>,
    pub(super) stat: Cow<'a, str>,
}

impl Domain {
    /// The domain as the prefix of keys, if the name of its policies does not identify it.
    pub(super) fn key_prefix(&self) -> Option<&str> {
        self.prefixes_keys.then_some(&*self.name)
    }

    /// The rule for a list of entries. Each entry takes one or two lookups, plus a linear search of
    /// wildcards.
    pub(super) fn find(&self, entries: &[(&str, &str)]) -> Option<Found<'_>> {
        let mut node = &self.nodes[0];
        let mut joined = Joined::default();
        let mut shared = Vec::new();
        let mut stat: Option<String> = None;
        for (index, &(key, value)) in entries.iter().enumerate() {
            let (next, match_kind) = self.step(node, &mut joined, key, value)?;
            let pattern = (match_kind == MatchKind::Wildcard).then(|| next.pattern(key));
            // If the star is in the key, nothing may be left for the value.
            let shares = pattern.filter(|pattern| next.share_threshold && !pattern.is_empty());
            shared.extend(shares.map(|share| (index, share)));
            let measured = match pattern {
                Some(pattern) if shares.is_some() || !next.value_to_metric => pattern,
                None if match_kind == MatchKind::Key && !next.value_to_metric => "",
                _ => value,
            };
            if stat.is_some() || !next.is_measured_as_written(match_kind, key, measured) {
                let stat = stat.get_or_insert_with(|| node.path.to_string());
                push(stat, key, measured);
            }
            node = next;
        }
        let rule = node.rule.as_ref().filter(|_| !entries.is_empty())?;
        let stat = match stat {
            _ if rule.detailed_metric => Cow::Owned(self.detailed(entries, &shared)),
            Some(stat) => Cow::Owned(stat),
            None => Cow::Borrowed(&*node.path),
        };
        Some(Found { rule, shared, stat })
    }

    /// The child of `node` that matches an entry.
    fn step<'a>(
        &'a self,
        node: &Node,
        joined: &mut Joined,
        key: &str,
        value: &str,
    ) -> Option<(&'a Node, MatchKind)> {
        if node.children.is_empty() {
            return None;
        }
        let composite = joined.join(key, value);
        let (index, match_kind) = if let Some(index) = node.children.get(composite) {
            (*index, MatchKind::Exact)
        } else if let Some(index) = node.wildcard(composite) {
            (index, MatchKind::Wildcard)
        } else {
            (*node.children.get(key.as_bytes())?, MatchKind::Key)
        };
        Some((&self.nodes[index], match_kind))
    }

    /// The stat with all values, except those that share a counter.
    fn detailed(&self, entries: &[(&str, &str)], shared: &[(usize, &str)]) -> String {
        let mut stat = self.name.to_string();
        let is_shared = !shared.is_empty();
        let mut shared = shared.iter().peekable();
        for (index, (key, value)) in entries.iter().enumerate() {
            let value =
                shared.next_if(|(at, _)| *at == index).map_or(*value, |(_, shared)| *shared);
            push(&mut stat, key, value);
            // envoyproxy/ratelimit writes an empty value this way, unless a counter is shared.
            if value.is_empty() && !is_shared {
                stat.push('_');
            }
        }
        stat
    }

    /// The stat of a limit supplied by a request.
    pub(super) fn override_stat(&self, entries: &[(&str, &str)]) -> String {
        let mut stat = self.name.to_string();
        for (key, value) in entries {
            push(&mut stat, key, value);
        }
        if entries.is_empty() {
            stat.push('.');
        }
        stat
    }
}

/// Appends `.key` or `.key_value`.
fn push(stat: &mut String, key: &str, value: &str) {
    stat.push('.');
    stat.push_str(key);
    if !value.is_empty() {
        stat.push('_');
        stat.push_str(value);
    }
}

impl Node {
    fn wildcard(&self, composite: &[u8]) -> Option<usize> {
        if self.wildcards.is_empty() {
            return None;
        }
        let composite = std::str::from_utf8(composite).ok()?;
        self.wildcards
            .iter()
            .find(|(wildcard, _)| wildcard.matches(composite))
            .map(|(_, index)| *index)
    }

    /// The value part of the composite key, or all of it, for an entry that matches by a `*`.
    fn pattern(&self, key: &str) -> &str {
        self.value_pattern(key).unwrap_or(&self.composite)
    }

    /// The part of the composite key after the key, unless the `*` is in the key.
    fn value_pattern(&self, key: &str) -> Option<&str> {
        self.composite.strip_prefix(key)?.strip_prefix('_')
    }

    /// Whether key and value form the composite key.
    fn is_measured_as_written(&self, match_kind: MatchKind, key: &str, value: &str) -> bool {
        match match_kind {
            MatchKind::Key => value.is_empty(),
            MatchKind::Exact => !value.is_empty(),
            MatchKind::Wildcard => self.value_pattern(key) == Some(value) && !value.is_empty(),
        }
    }
}

/// Longer texts are stored on the heap.
const MAX_INLINE: usize = 128;

/// A buffer for `key_value`, reused for every entry of a request.
#[derive(Debug)]
struct Joined {
    inline: [u8; MAX_INLINE],
    heap: Vec<u8>,
}

impl Default for Joined {
    fn default() -> Self {
        Joined { inline: [0; MAX_INLINE], heap: Vec::new() }
    }
}

impl Joined {
    /// `key_value`.
    fn join(&mut self, key: &str, value: &str) -> &[u8] {
        let Joined { inline, heap } = self;
        let (key, value) = (key.as_bytes(), value.as_bytes());
        let length = key.len() + 1 + value.len();
        if length > MAX_INLINE {
            heap.clear();
            heap.extend_from_slice(key);
            heap.push(b'_');
            heap.extend_from_slice(value);
            return heap;
        }
        let joined = &mut inline[..length];
        let (first, rest) = joined.split_at_mut(key.len());
        first.copy_from_slice(key);
        rest[0] = b'_';
        rest[1..].copy_from_slice(value);
        joined
    }
}

/// A composite key with `*`, each of which matches any text.
#[derive(Clone, Debug)]
pub(super) struct Wildcard {
    first: Box<str>,
    /// The parts between, in order.
    middle: Box<[Box<str>]>,
    last: Box<str>,
    /// The minimum length of a matching text.
    shortest: usize,
}

impl Wildcard {
    /// Parses a composite key; `None` without `*`.
    pub(super) fn parse(text: &str) -> Option<Wildcard> {
        let (first, rest) = text.split_once('*')?;
        let (middle, last) =
            rest.rsplit_once('*').map_or((None, rest), |(middle, last)| (Some(middle), last));
        let middle =
            middle.map_or_else(Box::default, |middle| middle.split('*').map(Box::from).collect());
        let shortest = text.len() - text.matches('*').count();
        Some(Wildcard { first: first.into(), middle, last: last.into(), shortest })
    }

    /// Whether a text matches, in time linear in its length.
    fn matches(&self, text: &str) -> bool {
        if text.len() < self.shortest {
            return false;
        }
        let inner = text.strip_prefix(&*self.first).and_then(|text| text.strip_suffix(&*self.last));
        let Some(mut inner) = inner else { return false };
        for part in &self.middle {
            let Some(at) = inner.find(&**part) else { return false };
            inner = inner.split_at(at + part.len()).1;
        }
        true
    }
}
