//! A domain: a tree of descriptors, and how a request goes down it.

use std::borrow::Cow;
use std::collections::HashMap;

use foldhash::fast::FixedState;

use super::joined::Joined;
use super::overrides::Brought;
use super::rule::Rule;
use super::wildcard::Wildcard;

/// One domain.
#[derive(Debug)]
pub(super) struct Domain {
    pub(super) name: Box<str>,
    /// Whether keys must tell the domain, because the name of its policies does not.
    pub(super) is_in_keys: bool,
    /// The root, then every descriptor after the one that it is in.
    pub(super) nodes: Vec<Node>,
    pub(super) brought: Brought,
}

/// A descriptor of the configuration.
#[derive(Debug, Default)]
pub(super) struct Node {
    /// The domain and the composite keys that lead here, joined by `.`.
    pub(super) path: Box<str>,
    /// Its own composite key: `key` or `key_value`.
    pub(super) composite: Box<str>,
    pub(super) rule: Option<Rule>,
    pub(super) value_to_metric: bool,
    pub(super) share_threshold: bool,
    /// The descriptors in it by composite key. Requests add none, so that the hash needs no secret.
    pub(super) children: HashMap<Box<[u8]>, usize, FixedState>,
    /// Those of them with `*`, in the order in which they are written.
    pub(super) wildcards: Vec<(Wildcard, usize)>,
}

/// How an entry of a request fits a descriptor.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fit {
    /// Key and value.
    Exact,
    /// By a `*`.
    Wildcard,
    /// By the key alone.
    Key,
}

/// The rule that a request leads to.
#[derive(Debug)]
pub(super) struct Found<'a> {
    pub(super) rule: &'a Rule,
    /// What stands for the values of entries whose values share one count, by the entry's index.
    pub(super) shared: Vec<(usize, &'a str)>,
    pub(super) stat: Cow<'a, str>,
}

impl Domain {
    /// What its keys begin with, if the name of its policies does not tell it.
    pub(super) fn in_keys(&self) -> Option<&str> {
        self.is_in_keys.then_some(&*self.name)
    }

    /// The rule of these entries. Takes a look-up or two an entry, and tries wildcards in turn.
    pub(super) fn find(&self, entries: &[(&str, &str)]) -> Option<Found<'_>> {
        let mut node = self.nodes.first()?;
        let mut joined = Joined::default();
        let mut shared = Vec::new();
        let mut stat: Option<String> = None;
        for (index, &(key, value)) in entries.iter().enumerate() {
            let (next, fit) = self.step(node, &mut joined, key, value)?;
            let pattern = (fit == Fit::Wildcard).then(|| next.pattern(key));
            // A star of the key may leave nothing that could stand for the value.
            let shares = pattern.filter(|pattern| next.share_threshold && !pattern.is_empty());
            shared.extend(shares.map(|share| (index, share)));
            let measured = match pattern {
                Some(pattern) if shares.is_some() || !next.value_to_metric => pattern,
                None if fit == Fit::Key && !next.value_to_metric => "",
                _ => value,
            };
            if stat.is_some() || !next.is_measured_as_written(fit, key, measured) {
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

    /// The descriptor in `node` that an entry fits.
    fn step<'a>(
        &'a self,
        node: &Node,
        joined: &mut Joined,
        key: &str,
        value: &str,
    ) -> Option<(&'a Node, Fit)> {
        if node.children.is_empty() {
            return None;
        }
        let composite = joined.join(key, value);
        let (index, fit) = if let Some(index) = node.children.get(composite) {
            (*index, Fit::Exact)
        } else if let Some(index) = node.wildcard(composite) {
            (index, Fit::Wildcard)
        } else {
            (*node.children.get(key.as_bytes())?, Fit::Key)
        };
        Some((self.nodes.get(index)?, fit))
    }

    /// The stat that tells all values, but for those that share a count.
    fn detailed(&self, entries: &[(&str, &str)], shared: &[(usize, &str)]) -> String {
        let mut stat = self.name.to_string();
        let is_shared = !shared.is_empty();
        let mut shared = shared.iter().peekable();
        for (index, (key, value)) in entries.iter().enumerate() {
            let value = shared.next_if(|(at, _)| *at == index).map_or(*value, |(_, x)| *x);
            push(&mut stat, key, value);
            // The reference writes an empty value so, unless a count is shared.
            if value.is_empty() && !is_shared {
                stat.push('_');
            }
        }
        stat
    }

    /// The stat of a rule that a request brings.
    pub(super) fn brought_stat(&self, entries: &[(&str, &str)]) -> String {
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

/// Adds `.key` or `.key_value`.
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
        self.wildcards.iter().find(|(x, _)| x.matches(composite)).map(|(_, index)| *index)
    }

    /// What of the composite key is the value, for an entry of this key that fits by a `*`.
    fn pattern(&self, key: &str) -> &str {
        let value =
            self.composite.strip_prefix(key).and_then(|composite| composite.strip_prefix('_'));
        value.unwrap_or(&self.composite)
    }

    /// Whether key and value come to the composite key.
    fn is_measured_as_written(&self, fit: Fit, key: &str, value: &str) -> bool {
        match fit {
            Fit::Key => value.is_empty(),
            Fit::Exact => !value.is_empty(),
            Fit::Wildcard => {
                let rest = self
                    .composite
                    .strip_prefix(key)
                    .and_then(|composite| composite.strip_prefix('_'));
                rest == Some(value) && !value.is_empty()
            }
        }
    }
}
