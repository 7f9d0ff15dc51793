//! `tollgate init`: configuration files that connect a gateway to the daemon.

mod address;
mod recipes;

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, anyhow, ensure};

use crate::arguments::{Gateway, Init};
use crate::output;

pub(crate) use address::Address;

/// The files of one gateway.
#[derive(Debug)]
struct Recipe {
    /// The gateway's name.
    name: &'static str,
    /// The daemon's file.
    daemon: File,
    files: &'static [File],
}

/// A file with placeholders for addresses.
#[derive(Debug)]
struct File {
    name: &'static str,
    /// The start of a comment.
    comment: &'static str,
    text: &'static str,
}

impl Gateway {
    fn recipe(self) -> Recipe {
        match self {
            Self::Nginx => recipes::NGINX,
            Self::Caddy => recipes::CADDY,
            Self::Traefik => recipes::TRAEFIK,
            Self::Haproxy => recipes::HAPROXY,
            Self::Envoy => recipes::ENVOY,
            Self::EnvoyRatelimit => recipes::ENVOY_RATELIMIT,
        }
    }
}

impl Recipe {
    fn all(&self) -> impl Iterator<Item = &File> {
        std::iter::once(&self.daemon).chain(self.files)
    }

    fn file(&self, name: &str) -> Result<&File> {
        self.all().find(|file| file.name == name).ok_or_else(|| {
            let names: Vec<_> = self.all().map(|file| file.name).collect();
            anyhow!("{} has no file {name:?}; it has {}", self.name, names.join(", "))
        })
    }
}

pub(crate) fn run(arguments: &Init) -> Result<ExitCode> {
    let recipe = arguments.gateway.recipe();
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
    for file in recipe.all() {
        let line = "=".repeat(20);
        text.push_str(&format!("{} {line} {} {line}\n", file.comment, file.name));
        text.push_str(&fill(file, recipe, arguments));
        text.push('\n');
    }
    text
}

/// Writes the files and returns the report. If any file exists, nothing is written.
fn write(recipe: &Recipe, arguments: &Init, folder: &Path) -> Result<String> {
    ensure!(folder.is_dir(), "{} is not a directory; create it, or name another", folder.display());
    for file in recipe.all() {
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
    for file in recipe.all() {
        let path = folder.join(file.name);
        let opened = OpenOptions::new().write(true).create_new(true).open(&path);
        opened
            .and_then(|mut opened| opened.write_all(fill(file, recipe, arguments).as_bytes()))
            .with_context(|| format!("cannot write {}", path.display()))?;
        report.push_str(&format!("wrote {}\n", path.display()));
    }
    Ok(report)
}
