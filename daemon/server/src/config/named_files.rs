//! The files that a configuration names, looked at before anything depends on them.

use std::collections::HashMap;
use std::path::Path;

use super::error::{Complaints, ConfigError, ConfigErrors};
use super::layers::Layered;
use super::overrides_file::{OverridesFileError, read_overrides};
use super::read::tokens::TokenSecret;
use super::shape::join;
use super::tree::{Body, Node};
use crate::access::Access;
use crate::listener::Tls;
use crate::xds;

impl Layered {
    /// Reads every file that the configuration names as the daemon will: overrides, tokens, the
    /// certificates and keys of TLS, the store's password. Keys for `jwt` and files of
    /// envoyproxy/ratelimit were read with the configuration. Blocks as long as that takes: a million overrides took 0.7 s of a core.
    ///
    /// # Errors
    /// Files cannot be used. Each error has the field that names the file, with its place, and the
    /// place in the file as [`ConfigError::named`].
    pub fn check_files(&self) -> Result<(), ConfigErrors> {
        let complaints = Complaints::default();
        for check in [check_store, check_tls, check_tokens, check_overrides, check_xds] {
            check(self, &complaints);
        }
        if complaints.is_empty() { Ok(()) } else { Err(self.errors(complaints)) }
    }
}

fn check_store(layered: &Layered, complaints: &Complaints) {
    if let Err(error) = layered.config.store.check_password_file() {
        let said = find(&layered.tree, &["store", "password_file"]);
        complaints.add(at(error, said));
    }
}

fn check_tls(layered: &Layered, complaints: &Complaints) {
    let Some(files) = &layered.config.listen.tls else { return };
    for error in Tls::mistakes(files) {
        let said = find(&layered.tree, &["listen", "tls", error.field()]);
        let message = format!("{}: {}", error.file().display(), error.why());
        let complaint = ConfigError::new(message).of(join("listen.tls", error.field()));
        complaints.add(at(complaint.naming(error.file(), None, None), said));
    }
}

fn check_xds(layered: &Layered, complaints: &Complaints) {
    let xds = layered.config.envoy.xds.as_ref();
    let Some(tls) = xds.and_then(|xd| xd.tls.as_ref()) else { return };
    for mistake in xds::mistakes(tls) {
        let said = find(&layered.tree, &["envoy", "xds", mistake.field]);
        let complaint = ConfigError::new(format!("{}: {}", mistake.file.display(), mistake.why));
        let complaint = complaint.of(join("envoy.xds", mistake.field));
        complaints.add(at(complaint.naming(&mistake.file, None, None), said));
    }
}

fn check_tokens(layered: &Layered, complaints: &Complaints) {
    let tokens = &layered.config.tokens;
    let Err(errors) = Access::new(tokens) else { return };
    let written = find(&layered.tree, &["tokens"]).map(|x| &x.body);
    for error in errors.0 {
        let (name, file) = match tokens.get(error.at).map(|token| &token.secret) {
            Some(TokenSecret::File(file)) => ("token_file", Some(file)),
            _ => ("token", None),
        };
        let token = match written {
            Some(Body::List(all)) => all.get(error.at),
            _ => None,
        };
        let complaint = ConfigError::new(error.why()).of(format!("tokens[{}].{name}", error.at));
        let complaint = match file {
            Some(file) => complaint.naming(file, None, None),
            None => complaint,
        };
        complaints.add(at(complaint, token.and_then(|token| token.get(name))));
    }
}

fn check_overrides(layered: &Layered, complaints: &Complaints) {
    let mut policies = layered.config.policies.clone();
    // Several policies may share a file, and one may have a million rows.
    let mut read = HashMap::new();
    for overrides_file in &layered.config.overrides_files {
        let said = find(&layered.tree, &["policies", &overrides_file.policy, "overrides_file"]);
        let field = format!("policies.{}.overrides_file", overrides_file.policy);
        let complain = |error: ConfigError| complaints.add(at(error.of(&*field), said));
        match read
            .entry(&overrides_file.path)
            .or_insert_with(|| read_overrides(&overrides_file.path))
        {
            Ok(rows) => {
                if let Err(error) = policies.set_additional_overrides(&overrides_file.policy, rows)
                {
                    let message = format!("{}: {error}", overrides_file.path.display());
                    complain(ConfigError::new(message).naming(&overrides_file.path, None, None));
                }
            }
            Err(errors) => {
                errors.iter().for_each(|error| complain(of_row(&overrides_file.path, error)))
            }
        }
    }
}

fn of_row(file: &Path, error: &OverridesFileError) -> ConfigError {
    ConfigError::new(error.to_string()).naming(file, error.line(), error.column())
}

/// What is written at a path.
fn find<'a>(tree: &'a Node, path: &[&str]) -> Option<&'a Node> {
    path.iter().try_fold(tree, |node, name| node.get(name))
}

fn at(error: ConfigError, said: Option<&Node>) -> ConfigError {
    match said {
        Some(node) => error.at(node.origin.clone()),
        None => error,
    }
}
