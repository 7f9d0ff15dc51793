//! `tollgate init`: what makes a gateway ask the daemon.

mod address;
mod caddy;
mod envoy;
mod envoy_ratelimit;
mod haproxy;
mod nginx;
mod traefik;

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
    /// As its makers write it.
    name: &'static str,
    /// The daemon's own.
    daemon: File,
    files: &'static [File],
}

/// A file with places where the addresses go.
#[derive(Debug)]
struct File {
    name: &'static str,
    /// What a comment begins with.
    comment: &'static str,
    text: &'static str,
}

/// The daemon's own, the same for every gateway that asks over HTTP.
const DAEMON: File =
    File { name: "tollgate.yaml", comment: "#", text: include_str!("tollgate.yaml") };

impl Gateway {
    fn recipe(self) -> Recipe {
        match self {
            Self::Nginx => nginx::RECIPE,
            Self::Caddy => caddy::RECIPE,
            Self::Traefik => traefik::RECIPE,
            Self::Haproxy => haproxy::RECIPE,
            Self::Envoy => envoy::RECIPE,
            Self::EnvoyRatelimit => envoy_ratelimit::RECIPE,
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
    let said = match (&arguments.file, &arguments.write) {
        (Some(name), _) => filled(recipe.file(name)?, &recipe, arguments),
        (None, Some(folder)) => write(&recipe, arguments, folder)?,
        (None, None) => together(&recipe, arguments),
    };
    output::print(&said)?;
    Ok(ExitCode::SUCCESS)
}

/// A file with the addresses filled in.
fn filled(file: &File, recipe: &Recipe, arguments: &Init) -> String {
    let Init { upstream, listen, .. } = arguments;
    let tollgate = arguments.tollgate();
    let places = [
        ("<gateway>", recipe.name.to_owned()),
        ("<listen>", listen.to_string()),
        ("<tollgate>", tollgate.to_string()),
        ("<tollgate.host>", tollgate.host.clone()),
        ("<tollgate.port>", tollgate.port.to_string()),
        ("<upstream>", upstream.to_string()),
        ("<upstream.host>", upstream.host.clone()),
        ("<upstream.port>", upstream.port.to_string()),
    ];
    places.iter().fold(file.text.to_owned(), |text, (place, value)| text.replace(place, value))
}

/// All files, one after another, each below a line that names it.
fn together(recipe: &Recipe, arguments: &Init) -> String {
    let mut text = String::new();
    for file in recipe.all() {
        let line = "=".repeat(20);
        text.push_str(&format!("{} {line} {} {line}\n", file.comment, file.name));
        text.push_str(&filled(file, recipe, arguments));
        text.push('\n');
    }
    text
}

/// Writes the files; what was written. Nothing that is there is overwritten, and then nothing is
/// written.
fn write(recipe: &Recipe, arguments: &Init, folder: &Path) -> Result<String> {
    ensure!(folder.is_dir(), "{} is no directory; make it first, or name one", folder.display());
    for file in recipe.all() {
        let path = folder.join(file.name);
        let is_there =
            path.try_exists().with_context(|| format!("cannot see {}", path.display()))?;
        ensure!(
            !is_there,
            "{} is there already; move it away, or write into another directory",
            path.display()
        );
    }
    let mut said = String::new();
    for file in recipe.all() {
        let path = folder.join(file.name);
        let opened = OpenOptions::new().write(true).create_new(true).open(&path);
        opened
            .and_then(|mut opened| opened.write_all(filled(file, recipe, arguments).as_bytes()))
            .with_context(|| format!("cannot write {}", path.display()))?;
        said.push_str(&format!("wrote {}\n", path.display()));
    }
    Ok(said)
}
