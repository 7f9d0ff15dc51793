//! The check of the files that a configuration names, before anything depends on them.

use tollgate_config::{FileProblem, LoadedConfig, TokenSecret};
use tollgate_document::ConfigErrors;
use tollgate_engine::Access;
use tollgate_envoy::xds;
use tollgate_transport::Tls;

/// Reads every file that the configuration names, as the daemon will: overrides, tokens, the
/// certificates and keys of TLS, the password of the store. The keys of `jwt` and the files of
/// `envoy.config` were read with the configuration.
///
/// The call blocks; a million overrides took 0.7 s of one core.
///
/// # Errors
/// Files cannot be used. Each error has the field that names the file, its position, and the
/// location in the file as [`ConfigError::named`](tollgate_document::ConfigError::named).
pub fn check_files(loaded: &LoadedConfig) -> Result<(), ConfigErrors> {
    let config = &loaded.config;
    let mut problems = config.listen.tls.as_ref().map(Tls::problems).unwrap_or_default();
    problems.extend(token_problems(loaded));
    let xds = config.envoy.xds.as_ref().and_then(|options| options.tls.as_ref());
    problems.extend(xds.map(xds::file_problems).unwrap_or_default());
    loaded.check_files(problems)
}

fn token_problems(loaded: &LoadedConfig) -> Vec<FileProblem> {
    let tokens = &loaded.config.tokens;
    let Err(errors) = Access::new(tokens) else { return Vec::new() };
    let mut problems = Vec::new();
    for error in errors.0 {
        let (field, file) = match tokens.get(error.index).map(|token| &token.secret) {
            Some(TokenSecret::File(file)) => ("token_file", Some(file.clone())),
            Some(TokenSecret::Sha256(_)) => ("token_sha256", None),
            Some(TokenSecret::Certificate(_)) => ("certificate", None),
            Some(TokenSecret::Text(_)) | None => ("token", None),
        };
        let field = format!("tokens[{}].{field}", error.index);
        problems.push(FileProblem { field, file, message: error.message });
    }
    problems
}
