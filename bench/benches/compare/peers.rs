//! Programs that Tollgate is compared with.

use std::path::PathBuf;

use bench::report::Report;

/// A program of another project.
#[derive(Debug)]
pub(crate) struct Peer {
    /// Its file, on the path.
    program: &'static str,
    /// An environment variable with its path.
    variable: &'static str,
    /// How to get it.
    remedy: &'static str,
}

pub(crate) const LIMITADOR: Peer = Peer {
    program: "limitador-server",
    variable: "LIMITADOR",
    remedy: "cargo install --git https://github.com/Kuadrant/limitador limitador-server",
};

pub(crate) const THROTTLECRAB: Peer = Peer {
    program: "throttlecrab-server",
    variable: "THROTTLECRAB",
    remedy: "cargo install throttlecrab-server",
};

pub(crate) const GUBERNATOR: Peer = Peer {
    program: "gubernator",
    variable: "GUBERNATOR",
    remedy: "go install github.com/gubernator-io/gubernator/v2/cmd/gubernator@v2.13.0",
};

pub(crate) const RATELIMIT: Peer = Peer {
    program: "ratelimit",
    variable: "RATELIMIT",
    remedy: "cargo xtask test --peers compiles envoyproxy/ratelimit; set RATELIMIT to \
             target/tools/ratelimit/ratelimit",
};

/// A module of Redis, which has no program.
pub(crate) const REDIS_CELL: Peer = Peer {
    program: "libredis_cell.so",
    variable: "REDIS_CELL",
    remedy: "cargo build --release in a clone of https://github.com/brandur/redis-cell; set \
             REDIS_CELL to target/release/libredis_cell.so",
};

impl Peer {
    /// The file that the variable names, or the one on the path. Notes a missing one.
    pub(crate) fn find(&self, report: &mut Report) -> Option<PathBuf> {
        let named = std::env::var_os(self.variable).filter(|path| !path.is_empty());
        let path = std::env::var_os("PATH").unwrap_or_default();
        let found = named.map(PathBuf::from).or_else(|| {
            let mut files = std::env::split_paths(&path).map(|folder| folder.join(self.program));
            files.find(|file| file.is_file())
        });
        if found.is_none() {
            report.note_missing(format!("{}. To get it: {}", self.program, self.remedy));
        }
        found
    }
}
