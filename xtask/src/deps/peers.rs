//! Programs that take minutes to install: `cargo xtask test --peers` installs them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::{Skipped, debian, named_or, on_path, programs};
use crate::process;

/// Where Debian's package `libtomcat10-embed-java` puts Tomcat.
const TOMCAT: &str = "/usr/share/java/tomcat10-embed-core.jar";

/// A program, and the tests that need it.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) name: &'static str,
    /// The arguments that select its tests.
    pub(crate) tests: &'static str,
    pub(crate) install: fn(root: &Path) -> Result<()>,
}

pub(crate) const PEERS: [Peer; 2] = [
    Peer {
        name: "Traefik",
        tests: "--test gateways --test servers traefik",
        install: compile_traefik,
    },
    Peer { name: "Tomcat", tests: "--test servers tomcat", install: install_tomcat },
];

fn install_tomcat(_: &Path) -> Result<()> {
    programs(&["java"])?;
    debian(TOMCAT, "libtomcat10-embed-java")
}

/// Notes the peers that are not installed.
pub(crate) fn note_missing_peers(root: &Path, skipped: &mut Skipped) {
    let remedy = "is not installed; cargo xtask test --peers installs it";
    let traefik = named_or("TRAEFIK", || {
        let found = on_path("traefik") || has_traefik(&traefik_folder(root));
        found.then_some(()).with_context(|| format!("Traefik {remedy}"))
    });
    skipped.note("the tests of Traefik", traefik);
    let tomcat = Path::new(TOMCAT).is_file().then_some(());
    let tomcat = tomcat.with_context(|| format!("Tomcat {remedy}"));
    skipped.note("the comparison of paths with Tomcat", tomcat);
}

fn traefik_folder(root: &Path) -> PathBuf {
    root.join("target/tools/traefik")
}

/// The file with the version that was compiled.
const VERSION_FILE: &str = "version";

/// Whether the tested version is compiled.
fn has_traefik(folder: &Path) -> bool {
    let version = fs::read_to_string(folder.join(VERSION_FILE));
    version.is_ok_and(|version| version == TRAEFIK_VERSION) && folder.join("traefik").is_file()
}

const TRAEFIK: &str = "github.com/traefik/traefik/v3/cmd/traefik";
/// The tested version. Another one may need other replacements in go.mod.
const TRAEFIK_VERSION: &str = "v3.5.4";

/// The version of the module that Traefik's fork is based on.
const HTTP_AUTH: &str = "github.com/abbot/go-http-auth@v0.4.1-0.20220112235402-e1cee1c72f2f";

/// Traefik has no package. Its module compiles as a dependency of the module in `peers/traefik`.
fn compile_traefik(root: &Path) -> Result<()> {
    named_or("TRAEFIK", || {
        let folder = traefik_folder(root);
        if on_path("traefik") || has_traefik(&folder) {
            return Ok(());
        }
        programs(&["go"])?;
        println!("compiling Traefik takes some minutes");
        fs::create_dir_all(&folder)?;
        let source = root.join("xtask/peers/traefik");
        fs::copy(source.join("go.mod"), folder.join("go.mod"))?;
        copy_http_auth(root, &folder.join("go-http-auth"))?;
        fs::copy(source.join("stale.go"), folder.join("go-http-auth/stale.go"))?;
        process::run(go(&folder, &["get", &format!("{TRAEFIK}@{TRAEFIK_VERSION}")]))?;
        process::run(go(&folder, &["build", "-o", "traefik", TRAEFIK]))?;
        Ok(fs::write(folder.join(VERSION_FILE), TRAEFIK_VERSION)?)
    })
}

/// `root` has no go.mod, so that no replacement applies.
fn copy_http_auth(root: &Path, to: &Path) -> Result<()> {
    process::run(go(root, &["mod", "download", HTTP_AUTH]))?;
    let from = process::output(go(root, &["list", "-m", "-f", "{{.Dir}}", HTTP_AUTH]))?;
    fs::create_dir_all(to)?;
    for file in fs::read_dir(from.trim())? {
        let file = file?;
        if file.file_type()?.is_file() {
            // Not `fs::copy`: files in Go's cache are read-only.
            fs::write(to.join(file.file_name()), fs::read(file.path())?)?;
        }
    }
    Ok(())
}

fn go(folder: &Path, arguments: &[&str]) -> Command {
    let mut go = Command::new("go");
    // go.mod and go.sum are completed with the modules of Traefik's go.mod.
    go.args(arguments).current_dir(folder).env("GOFLAGS", "-mod=mod");
    go
}
