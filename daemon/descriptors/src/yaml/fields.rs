//! Converts the tree of a file, and reports values of the wrong type.

use super::metadata::metadata;
use super::scalar::Scalar;
use super::{Body, Name, Node, line};
use crate::config::{DescriptorConfig, DomainConfig, LimitConfig};

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
        Some((first, self.errors.iter().map(|(_, message)| format!("\n  {message}")).collect()))
    }

    /// Reports a value of the wrong type.
    pub(super) fn refuse(&mut self, node: &Node, kind: &str) {
        let (tag, shown) = match &node.body {
            Body::Nothing => ("!!null", String::new()),
            Body::List(_) => ("!!seq", String::new()),
            Body::Fields(_) => ("!!map", String::new()),
            Body::Text(text) => (Scalar::parse(text, node.quoted).tag(), shown(text)),
        };
        let line = line(&node.origin);
        let number = line.unwrap_or_default();
        self.errors
            .push((line, format!("line {number}: cannot unmarshal {tag}{shown} into {kind}")));
    }

    pub(super) fn domain(&mut self, root: &Node) -> DomainConfig {
        let mut config = DomainConfig::default();
        for (name, node) in fields(root) {
            match &*name.text {
                "domain" => config.domain = self.text(node),
                "descriptors" => config.descriptors = self.descriptors(node),
                _ => {}
            }
        }
        config
    }

    fn descriptors(&mut self, node: &Node) -> Vec<DescriptorConfig> {
        let all = self.list(node, "[]config.YamlDescriptor");
        all.iter().map(|node| self.descriptor(node)).collect()
    }

    fn descriptor(&mut self, node: &Node) -> DescriptorConfig {
        let mut config =
            DescriptorConfig { line: line(&node.origin), ..DescriptorConfig::default() };
        for (name, node) in fields(node) {
            match &*name.text {
                "key" => config.key = self.text(node),
                "value" => config.value = self.text(node),
                "rate_limit" => config.rate_limit = self.limit(node),
                "descriptors" => config.descriptors = self.descriptors(node),
                "shadow_mode" => config.shadow_mode = self.boolean(node),
                "quota_mode" => config.quota_mode = self.boolean(node),
                "detailed_metric" => config.detailed_metric = self.boolean(node),
                "value_to_metric" => config.value_to_metric = self.boolean(node),
                "share_threshold" => config.share_threshold = self.boolean(node),
                "metadata" => match &node.body {
                    Body::Fields(all) if all.is_empty() => {}
                    Body::Fields(all) => config.metadata = Some(metadata(all)),
                    Body::Nothing => {}
                    _ => self.refuse(node, "map[string]interface {}"),
                },
                _ => {}
            }
        }
        config
    }

    fn limit(&mut self, node: &Node) -> Option<LimitConfig> {
        match node.body {
            Body::Nothing => return None,
            Body::Fields(_) => {}
            _ => self.refuse(node, "config.YamlRateLimit"),
        }
        let mut config = LimitConfig { line: line(&node.origin), ..LimitConfig::default() };
        for (name, node) in fields(node) {
            let is_number = matches!(&*name.text, "requests_per_unit" | "unit" | "unlimited");
            config.has_numbers |= is_number;
            match &*name.text {
                "requests_per_unit" => config.requests_per_unit = self.count(node),
                "unit" => config.unit = self.text(node),
                "unlimited" => config.unlimited = self.boolean(node),
                "name" => config.name = self.text(node),
                "replaces" => config.replaces = self.replaces(node),
                "limit" => {
                    config.has_texts = true;
                    config.texts = self.texts(node);
                }
                _ => {}
            }
        }
        Some(config)
    }

    fn replaces(&mut self, node: &Node) -> Vec<String> {
        let all = self.list(node, "[]config.yamlReplaces");
        // An absent name is empty, and rejected later.
        let name = |node: &Node| {
            let name = fields(node).iter().find(|(name, _)| name.text == "name");
            name.map(|(_, value)| self.text(value)).unwrap_or_default()
        };
        all.iter().map(name).collect()
    }

    /// One or several texts, each with its line.
    fn texts(&mut self, node: &Node) -> Vec<(String, Option<usize>)> {
        let all = match &node.body {
            Body::List(all) => all.as_slice(),
            _ => std::slice::from_ref(node),
        };
        all.iter().map(|node| (self.text(node), line(&node.origin))).collect()
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

    fn boolean(&mut self, node: &Node) -> bool {
        match &node.body {
            Body::Nothing => return false,
            Body::Text(text) => {
                if let Scalar::Bool(flag) = Scalar::parse(text, node.quoted) {
                    return flag;
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
                let scalar = Scalar::parse(text, node.quoted);
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
    let mut end = MAX_SHOWN - 3;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!(" `{}...`", &text[..end])
}
