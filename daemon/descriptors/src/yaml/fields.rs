//! Converts the tree of a file, and reports values of the wrong type.

use super::metadata::metadata;
use super::scalar::Scalar;
use super::{Body, Name, Node, line};
use crate::draft::{DescriptorDraft, Draft, LimitDraft};

/// The maximum length of a value that is shown completely.
const MAX_SHOWN: usize = 10;

/// Converts values and collects errors.
#[derive(Debug, Default)]
pub(super) struct Fields {
    errors: Vec<(Option<usize>, String)>,
}

impl Fields {
    /// The line of the first error, and all messages, one per line.
    pub(super) fn into_errors(self) -> Option<(Option<usize>, String)> {
        let first = self.errors.first()?.0;
        Some((first, self.errors.iter().map(|(_, x)| format!("\n  {x}")).collect()))
    }

    /// Reports a value of the wrong type.
    pub(super) fn refuse(&mut self, node: &Node, kind: &str) {
        let (tag, shown) = match &node.body {
            Body::Nothing => ("!!null", String::new()),
            Body::List(_) => ("!!seq", String::new()),
            Body::Fields(_) => ("!!map", String::new()),
            Body::Text(text) => (Scalar::of(text, node.quoted).tag(), shown(text)),
        };
        let line = line(&node.origin);
        let number = line.unwrap_or_default();
        self.errors
            .push((line, format!("line {number}: cannot unmarshal {tag}{shown} into {kind}")));
    }

    pub(super) fn draft(&mut self, root: &Node) -> Draft {
        let mut draft = Draft::default();
        for (name, node) in fields(root) {
            match &*name.text {
                "domain" => draft.domain = self.text(node),
                "descriptors" => draft.descriptors = self.descriptors(node),
                _ => {}
            }
        }
        draft
    }

    fn descriptors(&mut self, node: &Node) -> Vec<DescriptorDraft> {
        let all = self.list(node, "[]config.YamlDescriptor");
        all.iter().map(|x| self.descriptor(x)).collect()
    }

    fn descriptor(&mut self, node: &Node) -> DescriptorDraft {
        let mut draft = DescriptorDraft { line: line(&node.origin), ..DescriptorDraft::default() };
        for (name, node) in fields(node) {
            match &*name.text {
                "key" => draft.key = self.text(node),
                "value" => draft.value = self.text(node),
                "rate_limit" => draft.rate_limit = self.limit(node),
                "descriptors" => draft.descriptors = self.descriptors(node),
                "shadow_mode" => draft.shadow_mode = self.bool_value(node),
                "quota_mode" => draft.quota_mode = self.bool_value(node),
                "detailed_metric" => draft.detailed_metric = self.bool_value(node),
                "value_to_metric" => draft.value_to_metric = self.bool_value(node),
                "share_threshold" => draft.share_threshold = self.bool_value(node),
                "metadata" => match &node.body {
                    Body::Fields(all) if all.is_empty() => {}
                    Body::Fields(all) => draft.metadata = Some(metadata(all)),
                    Body::Nothing => {}
                    _ => self.refuse(node, "map[string]interface {}"),
                },
                _ => {}
            }
        }
        draft
    }

    fn limit(&mut self, node: &Node) -> Option<LimitDraft> {
        match node.body {
            Body::Nothing => return None,
            Body::Fields(_) => {}
            _ => self.refuse(node, "config.YamlRateLimit"),
        }
        let mut draft = LimitDraft { line: line(&node.origin), ..LimitDraft::default() };
        for (name, node) in fields(node) {
            let is_number = matches!(&*name.text, "requests_per_unit" | "unit" | "unlimited");
            draft.has_numbers |= is_number;
            match &*name.text {
                "requests_per_unit" => draft.requests_per_unit = self.count(node),
                "unit" => draft.unit = self.text(node),
                "unlimited" => draft.unlimited = self.bool_value(node),
                "name" => draft.name = self.text(node),
                "replaces" => draft.replaces = self.replaces(node),
                "limit" => {
                    draft.has_texts = true;
                    draft.texts = self.texts(node);
                }
                _ => {}
            }
        }
        Some(draft)
    }

    fn replaces(&mut self, node: &Node) -> Vec<String> {
        let all = self.list(node, "[]config.yamlReplaces");
        let name = |node: &Node| {
            let name = fields(node).iter().find(|(x, _)| x.text == "name");
            name.map(|(_, x)| self.text(x)).unwrap_or_default()
        };
        all.iter().map(name).collect()
    }

    /// One or several texts, each with its line.
    fn texts(&mut self, node: &Node) -> Vec<(String, Option<usize>)> {
        let all = match &node.body {
            Body::List(all) => all.as_slice(),
            _ => std::slice::from_ref(node),
        };
        all.iter().map(|x| (self.text(x), line(&x.origin))).collect()
    }

    fn list<'a>(&mut self, node: &'a Node, kind: &str) -> &'a [Node] {
        match &node.body {
            Body::Nothing => &[],
            Body::List(all) => all,
            Body::Text(_) | Body::Fields(_) => {
                self.refuse(node, kind);
                &[]
            }
        }
    }

    /// A string; a number or Boolean yields its text.
    fn text(&mut self, node: &Node) -> String {
        match &node.body {
            Body::Nothing => String::new(),
            Body::Text(text) => text.clone(),
            Body::List(_) | Body::Fields(_) => {
                self.refuse(node, "string");
                String::new()
            }
        }
    }

    fn bool_value(&mut self, node: &Node) -> bool {
        match &node.body {
            Body::Nothing => return false,
            Body::Text(text) => {
                if let Scalar::Bool(bool_value) = Scalar::of(text, node.quoted) {
                    return bool_value;
                }
            }
            Body::List(_) | Body::Fields(_) => {}
        }
        self.refuse(node, "bool");
        false
    }

    fn count(&mut self, node: &Node) -> u32 {
        match &node.body {
            Body::Nothing => return 0,
            Body::Text(text) => {
                let scalar = Scalar::of(text, node.quoted);
                if let Scalar::Integer(count) = scalar
                    && let Ok(count) = u32::try_from(count)
                {
                    return count;
                }
            }
            Body::List(_) | Body::Fields(_) => {}
        }
        self.refuse(node, "uint32");
        0
    }
}

fn fields(node: &Node) -> &[(Name, Node)] {
    match &node.body {
        Body::Fields(all) => all,
        _ => &[],
    }
}

/// A value in backquotes, truncated as in the YAML library of envoyproxy/ratelimit.
fn shown(text: &str) -> String {
    if text.len() <= MAX_SHOWN {
        return format!(" `{text}`");
    }
    let begin = (0..=MAX_SHOWN - 3).rev().find_map(|n| text.get(..n));
    format!(" `{}...`", begin.unwrap_or_default())
}
