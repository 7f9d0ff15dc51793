//! `cargo xtask directions`: which room may know which. The arrows point down only.

use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Result, ensure};

use crate::arguments::Arguments;
use crate::{Subcommand, process, repository};

pub(crate) const SUBCOMMAND: Subcommand =
    Subcommand { name: "directions", usage: "", about: "which crate may depend on which", run };

/// What a package may be built from; what only its tests use does not count.
#[derive(Debug)]
struct Arrows {
    package: &'static str,
    /// The packages of this workspace that it may know, directly or through another.
    rooms: &'static [&'static str],
    outside: Outside,
}

/// Which packages from outside the workspace a package may know.
#[derive(Debug)]
enum Outside {
    Nothing,
    AnyBut(&'static [&'static str]),
}

/// Below the daemon nobody knows sockets or HTTP. `tokio/net` is the feature `net` of `tokio`.
const NO_SOCKETS: Outside = Outside::AnyBut(&[
    "axum",
    "h2",
    "http",
    "http-body",
    "hyper",
    "hyper-util",
    "mio",
    "tokio/net",
]);
/// The Redis store has sockets, and no HTTP.
const NO_HTTP: Outside =
    Outside::AnyBut(&["axum", "h2", "http", "http-body", "hyper", "hyper-util"]);
const ANY: Outside = Outside::AnyBut(&[]);

/// Nothing but tests may be built with `tollgate-conformance` or `tollgate-testkit`, so they stand in
/// no row's `rooms`.
const ARROWS: &[Arrows] = &[
    Arrows { package: "tollgate-core", rooms: &[], outside: Outside::Nothing },
    Arrows { package: "tollgate-store", rooms: &["tollgate-core"], outside: NO_SOCKETS },
    Arrows {
        package: "tollgate-redis",
        rooms: &["tollgate-store", "tollgate-core"],
        outside: NO_HTTP,
    },
    Arrows {
        package: "tollgate-conformance",
        rooms: &["tollgate-store", "tollgate-core"],
        outside: NO_SOCKETS,
    },
    Arrows { package: "tollgate-testkit", rooms: &[], outside: ANY },
    Arrows {
        package: "tollgate",
        rooms: &["tollgate-redis", "tollgate-store", "tollgate-core"],
        // Its own code knows no sockets; the Redis store that it brings has them.
        outside: NO_HTTP,
    },
    Arrows {
        package: "tollgate-server",
        rooms: &["tollgate", "tollgate-redis", "tollgate-store", "tollgate-core"],
        outside: ANY,
    },
    Arrows {
        package: "tollgate-load",
        rooms: &["tollgate", "tollgate-redis", "tollgate-store", "tollgate-core"],
        outside: ANY,
    },
    Arrows {
        package: "tollgate-replay",
        rooms: &["tollgate", "tollgate-redis", "tollgate-store", "tollgate-core"],
        outside: NO_HTTP,
    },
    Arrows {
        package: "tollgate-cli",
        rooms: &[
            "tollgate-load",
            "tollgate-replay",
            "tollgate-server",
            "tollgate",
            "tollgate-redis",
            "tollgate-store",
            "tollgate-core",
        ],
        outside: ANY,
    },
    Arrows {
        package: "tollgate-examples",
        rooms: &[
            "tollgate-server",
            "tollgate",
            "tollgate-redis",
            "tollgate-store",
            "tollgate-core",
        ],
        outside: ANY,
    },
    Arrows {
        package: "bench",
        rooms: &[
            "tollgate-server",
            "tollgate",
            "tollgate-redis",
            "tollgate-store",
            "tollgate-core",
        ],
        outside: ANY,
    },
    Arrows { package: "xtask", rooms: &[], outside: ANY },
];

fn run(arguments: Arguments) -> Result<ExitCode> {
    arguments.finish()?;
    check(&repository::root())?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn check(root: &Path) -> Result<()> {
    let list = tree(root, &["--workspace", "--depth", "0"]);
    println!("$ {}", process::shown(&list));
    let packages = packages(&process::output(list)?);
    let mut wrong = Vec::new();
    for package in &packages {
        let known = tree(root, &["--package", &package.name]);
        println!("$ {}", process::shown(&known));
        wrong.extend(violations(ARROWS, package, &process::output(known)?));
    }
    for violation in &wrong {
        println!("{violation}");
    }
    ensure!(
        wrong.is_empty(),
        "{} of the arrows in xtask/src/directions.rs do not hold",
        wrong.len()
    );
    println!("the arrows of {} packages hold", packages.len());
    Ok(())
}

/// Lists packages as `NAME vVERSION (PLACE)|FEATURES`, the package itself first.
fn tree(root: &Path, which: &[&str]) -> Command {
    let mut tree = process::cargo(root, "tree");
    tree.args(["--edges", "normal", "--prefix", "none", "--format", "{p}|{f}", "--target", "all"]);
    tree.args(["--all-features"]);
    tree.args(which);
    tree
}

/// One line of `cargo tree`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Package {
    name: String,
    features: Vec<String>,
    /// Whether it lies in a folder, as the packages of this workspace do.
    is_room: bool,
}

fn packages(tree: &str) -> Vec<Package> {
    tree.lines().filter_map(package).collect()
}

fn package(line: &str) -> Option<Package> {
    // A line that repeats a package ends in ` (*)`.
    let (identity, features) = line.trim_end_matches(" (*)").split_once('|')?;
    let name = identity.split_whitespace().next()?;
    Some(Package {
        name: name.to_owned(),
        features: features.split(',').map(String::from).collect(),
        is_room: identity.contains("(/"),
    })
}

fn violations(table: &[Arrows], package: &Package, tree: &str) -> Vec<String> {
    let Some(arrows) = table.iter().find(|arrows| arrows.package == package.name) else {
        return vec![format!(
            "{} has no arrows: give it a row in xtask/src/directions.rs",
            package.name
        )];
    };
    let mut violations = Vec::new();
    for known in packages(tree) {
        if known.name == package.name {
            continue;
        }
        if let Some(why) = refused(arrows, &known) {
            let violation = format!("{} must not know {}: {why}", package.name, known.name);
            if !violations.contains(&violation) {
                violations.push(violation);
            }
        }
    }
    violations
}

fn refused(arrows: &Arrows, known: &Package) -> Option<String> {
    let name = known.name.as_str();
    if known.is_room {
        let allowed = arrows.rooms.contains(&name);
        return (!allowed).then(|| format!("of this workspace it may know {:?}", arrows.rooms));
    }
    match arrows.outside {
        Outside::Nothing => Some("it depends on nothing".to_owned()),
        Outside::AnyBut(refused) => refused
            .iter()
            .find(|refused| match refused.split_once('/') {
                Some((package, feature)) => {
                    package == name && known.features.iter().any(|on| on == feature)
                }
                None => **refused == name,
            })
            .map(|refused| format!("'{refused}' is above it")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &[Arrows] = &[
        Arrows { package: "core", rooms: &[], outside: Outside::Nothing },
        Arrows { package: "lib", rooms: &["core"], outside: NO_SOCKETS },
    ];

    fn check(name: &str, tree: &str, expected: &[&str]) {
        let package = package(&format!("{name} v0.1.0 (/repository/{name})|")).unwrap();
        let found = violations(TABLE, &package, tree);
        assert_eq!(found.len(), expected.len(), "{found:?}");
        for (found, expected) in found.iter().zip(expected) {
            assert!(found.contains(expected), "{found} does not say {expected}");
        }
    }

    #[test]
    fn arrows_point_down_only() {
        check("core", "core v0.1.0 (/repository/core)|", &[]);
        check(
            "core",
            "core v0.1.0 (/repository/core)|\nserde v1.0.0|std",
            &["must not know serde"],
        );
        check("core", "lib v0.1.0 (/repository/lib)|", &["must not know lib"]);
        check("lib", "core v0.1.0 (/repository/core)|\nquanta v0.12.0|\ntokio v1.0.0|rt,sync", &[]);
        check("lib", "tokio v1.0.0|net,rt\ntokio v1.0.0|net,rt (*)", &["'tokio/net'"]);
        check("lib", "hyper v1.0.0|\nhyperloglog v1.0.0|", &["must not know hyper:"]);
        check("newcomer", "", &["has no arrows"]);
    }
}
