//! The check of the files that a configuration names, before anything depends on them.

use tollgate_config::{FileProblem, LoadedConfig, TokenSecret};
use tollgate_document::ConfigErrors;
use tollgate_engine::Access;
use tollgate_envoy::xds;
use tollgate_transport::{Tls, TlsError};

/// Reads every file that the configuration names, as the daemon will: overrides, tokens, the
/// certificates and keys of TLS, the password of the store. The keys of `jwt` and the files of
/// `envoy.config` were read with the configuration.
///
/// The call blocks; a million overrides took 0.7 s of one core.
///
/// # Errors
/// Files cannot be used. Each error has the field that names the file, its position, and the location
/// in the file as [`ConfigError::named`](tollgate_document::ConfigError::named).
pub fn check_files(layered: &LoadedConfig) -> Result<(), ConfigErrors> {
    let mut problems = tls_problems(layered);
    problems.extend(token_problems(layered));
    problems.extend(xds_problems(layered));
    layered.check_files(problems)
}

fn tls_problems(layered: &LoadedConfig) -> Vec<FileProblem> {
    let Some(files) = &layered.config.listen.tls else { return Vec::new() };
    let problem = |error: &TlsError| FileProblem {
        field: format!("listen.tls.{}", error.field()),
        file: Some(error.file().to_owned()),
        message: format!("{}: {}", error.file().display(), error.reason()),
    };
    Tls::errors(files).iter().map(problem).collect()
}

fn xds_problems(layered: &LoadedConfig) -> Vec<FileProblem> {
    let options = layered.config.envoy.xds.as_ref();
    let Some(tls) = options.and_then(|options| options.tls.as_ref()) else { return Vec::new() };
    let problem = |error: xds::FileError| FileProblem {
        field: format!("envoy.xds.{}", error.field),
        message: format!("{}: {}", error.file.display(), error.reason),
        file: Some(error.file),
    };
    xds::file_errors(tls).into_iter().map(problem).collect()
}

fn token_problems(layered: &LoadedConfig) -> Vec<FileProblem> {
    let tokens = &layered.config.tokens;
    let Err(errors) = Access::new(tokens) else { return Vec::new() };
    let mut problems = Vec::new();
    for error in errors.0 {
        let (field, file) = match tokens.get(error.index).map(|token| &token.secret) {
            Some(TokenSecret::File(file)) => ("token_file", Some(file.clone())),
            _ => ("token", None),
        };
        let field = format!("tokens[{}].{field}", error.index);
        problems.push(FileProblem { field, file, message: error.message().to_owned() });
    }
    problems
}
