//! `tollgate config`: the configuration without a daemon.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use serde::Serialize;
use tollgate_daemon::{
    Config as Configuration, ConfigError, ConfigErrors, Layers, LoadedConfig, check_files,
    domain_file_warnings, has_domains,
};

use crate::FAILURE;
use crate::arguments::{Config, ConfigCommand, Form};
use crate::output::{self, counted};

pub(crate) fn run(arguments: &Config) -> Result<ExitCode> {
    match &arguments.command {
        ConfigCommand::Check { files, replaces, output } => {
            check(files, replaces.as_deref(), *output)
        }
        ConfigCommand::Print { config, origins } => print(config.as_deref(), *origins),
        ConfigCommand::Schema => {
            output::print(&tollgate_daemon::config_schema())?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn print(file: Option<&Path>, origins: bool) -> Result<ExitCode> {
    let layers = file.map_or_else(|| Layers::new().samples(), |file| Layers::new().file(file));
    let layered = layers.environment(std::env::vars_os()).read()?;
    output::print(&layered.print(origins))?;
    Ok(ExitCode::SUCCESS)
}

/// The result of a file, as JSON.
#[derive(Serialize)]
struct Verdict<'a> {
    file: &'a str,
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    policies: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rules: Option<usize>,
    /// The domains of files of envoyproxy/ratelimit, and their limits.
    #[serde(skip_serializing_if = "Option::is_none")]
    domains: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    limits: Option<usize>,
    errors: Vec<ErrorObject<'a>>,
    warnings: Vec<ErrorObject<'a>>,
    /// The number of errors that are not listed.
    more: usize,
}

#[derive(Serialize)]
struct ErrorObject<'a> {
    line: Option<usize>,
    column: Option<usize>,
    field: Option<&'a str>,
    message: &'a str,
    /// The location, if it is in a file that the field names.
    #[serde(skip_serializing_if = "Option::is_none")]
    named: Option<Named>,
}

impl<'a> From<&'a ConfigError> for ErrorObject<'a> {
    fn from(error: &'a ConfigError) -> Self {
        ErrorObject {
            line: error.line(),
            column: error.column(),
            field: error.field(),
            message: error.message(),
            named: error.named().map(|location| Named {
                file: location.file.display().to_string(),
                line: location.line,
                column: location.column,
            }),
        }
    }
}

#[derive(Serialize)]
struct Named {
    file: String,
    line: Option<u64>,
    column: Option<u64>,
}

/// A valid configuration, with what is doubtful in it.
struct Checked {
    /// Whether it is a file or a directory of envoyproxy/ratelimit.
    has_domains: bool,
    config: Configuration,
    warnings: Vec<ConfigError>,
}

/// Reads a file or a directory of envoyproxy/ratelimit, or a configuration with the files that it
/// names.
fn read(file: &Path) -> Result<Checked, ConfigErrors> {
    let has_domains = has_domains(file);
    let loaded = load(file, has_domains)?;
    check_files(&loaded)?;
    let mut warnings = loaded.warnings();
    let named = domain_file_warnings(&loaded.config.envoy.config);
    warnings.extend(named.into_iter().map(ConfigError::new));
    Ok(Checked { has_domains, warnings, config: loaded.config })
}

fn load(file: &Path, has_domains: bool) -> Result<LoadedConfig, ConfigErrors> {
    if has_domains {
        let layers = Layers::new().flag("FILE", "envoy.config", &file.display().to_string());
        // The user knows no field; the message names the file and the line.
        layers.partial().map_err(|errors| {
            let messages: Vec<_> = errors.iter().map(ConfigError::message).collect();
            ConfigError::new(messages.join("\n")).into()
        })
    } else {
        Layers::new().file(file).partial()
    }
}

/// Checks each file or directory, without environment variables and flags.
fn check(files: &[PathBuf], replaced: Option<&Path>, format: Form) -> Result<ExitCode> {
    let mut code = ExitCode::SUCCESS;
    let replaced = replaced.map(|file| load(file, has_domains(file))).transpose()?;
    for file in files {
        let mut read = read(file);
        match (&mut read, &replaced) {
            (Err(_), _) => code = ExitCode::from(FAILURE),
            (Ok(checked), Some(replaced)) => {
                let unused = checked.config.unused_limits(&replaced.config);
                checked.warnings.extend(unused.into_iter().map(ConfigError::new));
            }
            (Ok(_), None) => {}
        }
        match format {
            Form::Json => output::print(&object(file, &read)?)?,
            Form::Text => print_result(file, &read)?,
        }
    }
    Ok(code)
}

fn print_result(file: &Path, read: &Result<Checked, ConfigErrors>) -> Result<()> {
    match read {
        Ok(Checked { has_domains, config, warnings }) => {
            for warning in warnings {
                output::print_error(&format!("warning: {warning}\n"));
            }
            let policies = counted(config.policies.iter().count(), "policy", "policies");
            let rules = counted(config.rules.rules.len(), "rule", "rules");
            let domains = counted(config.domains.domains().count(), "domain", "domains");
            let limits = counted(config.domains.rule_count(), "limit", "limits");
            let counts = match (has_domains, config.domains.is_empty()) {
                (true, _) => format!("{domains}, {limits}"),
                (false, true) => format!("{policies}, {rules}"),
                (false, false) => format!("{policies}, {rules}, {domains}, {limits}"),
            };
            output::print(&format!("{}: ok: {counts}\n", file.display()))?;
        }
        Err(errors) => {
            let mistakes = counted(errors.count(), "mistake", "mistakes");
            let report = errors.report();
            output::print_error(&format!("{report}\n{}: {mistakes}\n", file.display()));
        }
    }
    Ok(())
}

fn object(file: &Path, read: &Result<Checked, ConfigErrors>) -> Result<String> {
    let name = file.display().to_string();
    let checked = read.as_ref().ok();
    let errors = read.as_ref().err().into_iter().flat_map(ConfigErrors::iter);
    let warnings = checked.into_iter().flat_map(|checked| &checked.warnings);
    let domains = checked
        .filter(|checked| checked.has_domains || !checked.config.domains.is_empty())
        .map(|checked| &checked.config.domains);
    let verdict = Verdict {
        file: &name,
        ok: read.is_ok(),
        policies: checked.map(|checked| checked.config.policies.iter().count()),
        rules: checked.map(|checked| checked.config.rules.rules.len()),
        domains: domains.map(|domains| domains.domains().count()),
        limits: domains.map(|domains| domains.rule_count()),
        errors: errors.map(ErrorObject::from).collect(),
        warnings: warnings.map(ErrorObject::from).collect(),
        more: read.as_ref().err().map_or(0, ConfigErrors::more),
    };
    Ok(format!("{}\n", serde_json::to_string(&verdict)?))
}
