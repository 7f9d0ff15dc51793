//! Programs that take minutes to install: `cargo xtask test --peers` installs them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::go::{GoProgram, copy_files, go, install, module_folder};
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

pub(crate) const PEERS: [Peer; 5] = [
    Peer {
        name: "Traefik",
        tests: "--test gateways --test servers traefik",
        install: compile_traefik,
    },
    Peer { name: "Tomcat", tests: "--test servers tomcat", install: install_tomcat },
    Peer {
        name: "envoyproxy/ratelimit",
        tests: "--test ratelimit peer::",
        install: compile_ratelimit,
    },
    Peer { name: "Jedis", tests: "--test resp jedis", install: download_jedis },
    Peer { name: "Helm", tests: "--test cli helm::", install: |root| HELM.install(root).map(drop) },
];

fn install_tomcat(_: &Path) -> Result<()> {
    programs(&["java"])?;
    debian(TOMCAT, "libtomcat10-embed-java")
}

/// Notes the peers that are not installed.
pub(crate) fn note_missing_peers(root: &Path, skipped: &mut Skipped) {
    let remedy = "is not installed; cargo xtask test --peers installs it";
    let traefik = named_or("TRAEFIK", || {
        let found =
            on_path("traefik") || has_version(&traefik_folder(root), "traefik", TRAEFIK_VERSION);
        found.then_some(()).with_context(|| format!("Traefik {remedy}"))
    });
    skipped.note("the tests of Traefik", traefik);
    let tomcat = Path::new(TOMCAT).is_file().then_some(());
    let tomcat = tomcat.with_context(|| format!("Tomcat {remedy}"));
    skipped.note("the comparison of paths with Tomcat", tomcat);
    let ratelimit = has_version(&ratelimit_folder(root), "ratelimit", RATELIMIT_VERSION);
    let ratelimit = ratelimit.then_some(());
    let ratelimit = ratelimit.with_context(|| format!("envoyproxy/ratelimit {remedy}"));
    skipped.note("the comparison with envoyproxy/ratelimit", ratelimit);
    let jedis = has_version(&jedis_folder(root), JEDIS_ARCHIVE, JEDIS_VERSION).then_some(());
    skipped.note("the tests with Jedis", jedis.with_context(|| format!("Jedis {remedy}")));
    let helm = HELM.path(root).is_file().then_some(());
    skipped.note("the tests of the Helm chart", helm.with_context(|| format!("Helm {remedy}")));
}

fn traefik_folder(root: &Path) -> PathBuf {
    root.join("target/tools/traefik")
}

fn ratelimit_folder(root: &Path) -> PathBuf {
    root.join("target/tools/ratelimit")
}

/// The file with the version that was compiled.
const VERSION_FILE: &str = "version";

/// Whether this version of a program is compiled in `folder`.
fn has_version(folder: &Path, program: &str, version: &str) -> bool {
    let compiled = fs::read_to_string(folder.join(VERSION_FILE));
    compiled.is_ok_and(|compiled| compiled == version) && folder.join(program).is_file()
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
        if on_path("traefik") || has_version(&folder, "traefik", TRAEFIK_VERSION) {
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
    copy_files(&module_folder(root, HTTP_AUTH)?, to)
}

const RATELIMIT: &str = "github.com/envoyproxy/ratelimit";
/// The tested version. The newest tag, v1.4.0, is of 2020.
const RATELIMIT_VERSION: &str = "v1.4.1-0.20260122083618-3fb702589d36";

/// envoyproxy/ratelimit has no package. Its module has a package named `service_cmd`, and examples
/// of its configuration.
fn compile_ratelimit(root: &Path) -> Result<()> {
    let folder = ratelimit_folder(root);
    if has_version(&folder, "ratelimit", RATELIMIT_VERSION) {
        return Ok(());
    }
    programs(&["go"])?;
    let module = format!("{RATELIMIT}@{RATELIMIT_VERSION}");
    let examples = module_folder(root, &module)?.join("examples/ratelimit/config");
    copy_files(&examples, &folder.join("examples"))?;
    let package = format!("{RATELIMIT}/src/service_cmd@{RATELIMIT_VERSION}");
    install(root, &folder.join("ratelimit"), &package)?;
    Ok(fs::write(folder.join(VERSION_FILE), RATELIMIT_VERSION)?)
}

/// Renders the chart of `deploy/helm`.
const HELM: GoProgram =
    GoProgram { name: "helm", package: "helm.sh/helm/v4/cmd/helm", version: "v4.3.1" };

/// The version in `peers/jedis/pom.xml`.
const JEDIS_VERSION: &str = "8.0.2";
const JEDIS_ARCHIVE: &str = "jedis-8.0.2.jar";

fn jedis_folder(root: &Path) -> PathBuf {
    root.join("target/tools/jedis")
}

/// Jedis and its dependencies, from Maven's repository.
fn download_jedis(root: &Path) -> Result<()> {
    let folder = jedis_folder(root);
    if has_version(&folder, JEDIS_ARCHIVE, JEDIS_VERSION) {
        return Ok(());
    }
    programs(&["java", "mvn"])?;
    let mut maven = Command::new("mvn");
    maven.current_dir(root).args([
        "--batch-mode",
        "--quiet",
        "--file",
        "xtask/peers/jedis/pom.xml",
    ]);
    maven.arg("dependency:copy-dependencies");
    maven.arg(format!("-DoutputDirectory={}", folder.display()));
    process::run(maven)?;
    Ok(fs::write(folder.join(VERSION_FILE), JEDIS_VERSION)?)
}
