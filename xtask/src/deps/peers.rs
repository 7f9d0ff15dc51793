//! Programs that take minutes to install: `cargo xtask test --peers` installs them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::{Skipped, debian, named_or, on_path, programs};
use crate::process;

/// Where Debian's package `libtomcat10-embed-java` puts Tomcat.
const TOMCAT: &str = "/usr/share/java/tomcat10-embed-core.jar";

/// Installs the peers. Those that cannot be installed are noted as skipped.
pub(crate) fn install_peers(root: &Path, skipped: &mut Skipped) {
    skipped.note("the tests of Traefik", compile_traefik(root));
    let tomcat = programs(&["java"]).and_then(|()| debian(TOMCAT, "libtomcat10-embed-java"));
    skipped.note("the comparison of paths with Tomcat", tomcat);
}

/// Notes the peers that are not installed.
pub(crate) fn note_missing_peers(root: &Path, skipped: &mut Skipped) {
    let remedy = "is not installed; cargo xtask test --peers installs it";
    let traefik = named_or("TRAEFIK", || {
        let found = on_path("traefik") || traefik_folder(root).join("traefik").is_file();
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

const TRAEFIK: &str = "github.com/traefik/traefik/v3/cmd/traefik";
/// The tested version. Another one may need other replacements in go.mod.
const TRAEFIK_VERSION: &str = "v3.5.4";

/// The version of the module that Traefik's fork is based on.
const HTTP_AUTH: &str = "github.com/abbot/go-http-auth@v0.4.1-0.20220112235402-e1cee1c72f2f";

/// Traefik has no package. Its module compiles as a dependency of the module in `peers/traefik`.
fn compile_traefik(root: &Path) -> Result<()> {
    named_or("TRAEFIK", || {
        let folder = traefik_folder(root);
        if on_path("traefik") || folder.join("traefik").is_file() {
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
        process::run(go(&folder, &["build", "-o", "traefik", TRAEFIK]))
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
