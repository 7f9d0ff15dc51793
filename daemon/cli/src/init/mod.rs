//! `tollgate init`: configuration files that connect a gateway to the daemon.

mod address;
mod recipes;

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};

use crate::arguments::Init;
use crate::output;

pub(crate) use address::Address;
use recipes::{File, Recipe};

pub(crate) fn run(arguments: &Init) -> Result<ExitCode> {
    let recipe = Recipe::new(arguments.gateway);
    let text = match (&arguments.file, &arguments.write) {
        (Some(name), _) => fill(recipe.file(name)?, &recipe, arguments),
        (None, Some(folder)) => write(&recipe, arguments, folder)?,
        (None, None) => concatenate(&recipe, arguments),
    };
    output::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// The text of a file with the addresses filled in.
fn fill(file: &File, recipe: &Recipe, arguments: &Init) -> String {
    let Init { upstream, listen, .. } = arguments;
    let tollgate = arguments.tollgate();
    let values = [
        ("<gateway>", recipe.name.to_owned()),
        ("<listen>", listen.to_string()),
        ("<tollgate>", tollgate.to_string()),
        ("<tollgate.host>", tollgate.host.clone()),
        ("<tollgate.port>", tollgate.port.to_string()),
        ("<upstream>", upstream.to_string()),
        ("<upstream.host>", upstream.host.clone()),
        ("<upstream.port>", upstream.port.to_string()),
    ];
    values
        .iter()
        .fold(file.text.to_owned(), |text, (placeholder, value)| text.replace(placeholder, value))
}

/// All files, each below a line with its name.
fn concatenate(recipe: &Recipe, arguments: &Init) -> String {
    let mut text = String::new();
    for file in recipe.files {
        let line = "=".repeat(20);
        text.push_str(&format!("{} {line} {} {line}\n", file.comment(), file.name));
        text.push_str(&fill(file, recipe, arguments));
        text.push('\n');
    }
    text
}

/// Writes the files and returns the report. If any file exists, nothing is written.
fn write(recipe: &Recipe, arguments: &Init, folder: &Path) -> Result<String> {
    ensure!(folder.is_dir(), "{} is not a directory; create it, or name another", folder.display());
    for file in recipe.files {
        let path = folder.join(file.name);
        let exists =
            path.try_exists().with_context(|| format!("cannot access {}", path.display()))?;
        ensure!(
            !exists,
            "{} already exists; move it, or write into another directory",
            path.display()
        );
    }
    let mut report = String::new();
    for file in recipe.files {
        let path = folder.join(file.name);
        let opened = OpenOptions::new().write(true).create_new(true).open(&path);
        opened
            .and_then(|mut opened| opened.write_all(fill(file, recipe, arguments).as_bytes()))
            .with_context(|| format!("cannot write {}", path.display()))?;
        report.push_str(&format!("wrote {}\n", path.display()));
    }
    Ok(report)
}
