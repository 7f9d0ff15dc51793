//! `tollgate config check`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use serde::Serialize;
use tollgate_server::{Config, ConfigErrors, FileLocation, Layers, check_files};

use crate::arguments::Form;
use crate::{FAILURE, output};

/// What there is to say of a file, as an object.
#[derive(Serialize)]
struct Verdict<'a> {
    file: &'a str,
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    policies: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rules: Option<usize>,
    errors: Vec<Mistake<'a>>,
    /// How many are not shown.
    more: usize,
}

#[derive(Serialize)]
struct Mistake<'a> {
    line: Option<usize>,
    column: Option<usize>,
    field: Option<&'a str>,
    message: &'a str,
    /// Where it is, if that is in a file that the field names.
    #[serde(skip_serializing_if = "Option::is_none")]
    named: Option<Named>,
}

#[derive(Serialize)]
struct Named {
    file: String,
    line: Option<u64>,
    column: Option<u64>,
}

impl From<&FileLocation> for Named {
    fn from(it: &FileLocation) -> Self {
        Named { file: it.file.display().to_string(), line: it.line, column: it.column }
    }
}

/// Looks at all the files, each by itself and with those that it names: no environment, no flags.
pub(super) fn run(files: &[PathBuf], form: Form) -> Result<ExitCode> {
    let mut code = ExitCode::SUCCESS;
    for file in files {
        let read = Layers::new().file(file).partial();
        let read = read.and_then(|x| check_files(&x).map(|()| x.config));
        if read.is_err() {
            code = ExitCode::from(FAILURE);
        }
        match form {
            Form::Json => output::print(&object(file, &read)?)?,
            Form::Text => tell(file, &read)?,
        }
    }
    Ok(code)
}

fn tell(file: &Path, read: &Result<Config, ConfigErrors>) -> Result<()> {
    match read {
        Ok(config) => {
            let policies = counted(config.policies.iter().count(), "policy", "policies");
            let rules = counted(config.rules.rules.len(), "rule", "rules");
            output::print(&format!("{}: ok: {policies}, {rules}\n", file.display()))?;
        }
        Err(errors) => {
            let mistakes = counted(errors.count(), "mistake", "mistakes");
            let report = errors.report();
            output::complain(&format!("{report}\n{}: {mistakes}\n", file.display()));
        }
    }
    Ok(())
}

/// One object a line.
fn object(file: &Path, read: &Result<Config, ConfigErrors>) -> Result<String> {
    let name = file.display().to_string();
    let mistakes = read.as_ref().err().into_iter().flat_map(ConfigErrors::iter);
    let errors = mistakes.map(|mistake| Mistake {
        line: mistake.line(),
        column: mistake.column(),
        field: mistake.field(),
        message: mistake.message(),
        named: mistake.named().map(Named::from),
    });
    let verdict = Verdict {
        file: &name,
        ok: read.is_ok(),
        policies: read.as_ref().ok().map(|x| x.policies.iter().count()),
        rules: read.as_ref().ok().map(|x| x.rules.rules.len()),
        errors: errors.collect(),
        more: read.as_ref().err().map_or(0, ConfigErrors::more),
    };
    Ok(format!("{}\n", serde_json::to_string(&verdict)?))
}

fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}
