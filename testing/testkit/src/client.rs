//! Others' clients, as programs that a test runs and whose lines it reads.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// A client that can be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientKind {
    /// <https://redis.io/docs/latest/develop/tools/cli/>
    RedisCli,
    /// Python with redis-py, and with gRPC and Envoy's interface.
    Python,
    /// Node.js with two versions of ioredis, `ioredis5` and `ioredis6`.
    Node,
}

/// How one of them is found.
#[derive(Debug)]
struct Program {
    name: &'static str,
    /// What must be installed beside the program, below the workspace.
    modules: &'static [&'static str],
    /// The variable by which the program finds them, and what it is to say.
    path: Option<(&'static str, &'static str)>,
    /// What to type where it is missing.
    remedy: &'static str,
    /// Whether `cargo xtask test` has it for sure where it may install packages, as in CI.
    is_packaged: bool,
}

const REDIS_CLI: Program = Program {
    name: "redis-cli",
    modules: &[],
    path: None,
    remedy: "on Debian or Ubuntu: sudo apt-get install redis-tools",
    is_packaged: true,
};

const PYTHON: Program = Program {
    name: "python3",
    modules: &["target/tools/python/redis", "target/tools/python/grpc"],
    path: Some(("PYTHONPATH", "target/tools/python")),
    remedy: "cargo xtask test installs what it needs",
    is_packaged: false,
};

const NODE: Program = Program {
    name: "node",
    modules: &["target/tools/node/node_modules/ioredis5"],
    path: Some(("NODE_PATH", "target/tools/node/node_modules")),
    remedy: "cargo xtask test installs what it needs",
    is_packaged: false,
};

impl ClientKind {
    fn program(self) -> &'static Program {
        match self {
            Self::RedisCli => &REDIS_CLI,
            Self::Python => &PYTHON,
            Self::Node => &NODE,
        }
    }

    /// The program, to be given arguments. If it is not installed, standard error says that a test is
    /// skipped and what to type, even where a test's output is captured.
    ///
    /// # Panics
    ///
    /// If it is missing in CI although it has a package that `cargo xtask test` installs.
    #[track_caller]
    pub fn command(self) -> Option<Command> {
        let program = self.program();
        let command = program.command();
        if command.is_none() {
            let missing = format!("{} is not installed; {}", program.name, program.remedy);
            let in_ci = env::var_os("CI").is_some();
            assert!(!(in_ci && program.is_packaged), "{missing}");
            // Nobody is left to tell if that fails.
            let _ = writeln!(io::stderr(), "SKIPPED: {missing}");
        }
        command
    }
}

impl Program {
    fn command(&self) -> Option<Command> {
        let path = env::var_os("PATH").unwrap_or_default();
        let found = env::split_paths(&path).any(|folder| folder.join(self.name).is_file());
        if !found || !self.modules.iter().all(|module| below_workspace(module).exists()) {
            return None;
        }
        let mut command = Command::new(self.name);
        if let Some((variable, folder)) = self.path {
            command.env(variable, below_workspace(folder));
        }
        Some(command)
    }
}

/// A path without a way up in it, which Node.js does not take.
fn below_workspace(path: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    fs::canonicalize(&root).unwrap_or(root).join(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_given_its_modules_or_is_missing() {
        let check = |name, modules, expected: bool| {
            let path = Some(("PYTHONPATH", "crates"));
            let program = Program { name, modules, path, remedy: "", is_packaged: false };
            let command = program.command();
            assert_eq!(command.is_some(), expected, "{program:?}");
            let given = command.iter().flat_map(Command::get_envs).next();
            assert_eq!(given.is_some(), expected, "{program:?}");
        };
        check("sh", &[], true);
        check("sh", &["testing/testkit"], true);
        check("sh", &["crates/no-such-room"], false);
        check("tollgate-no-such-program", &[], false);
    }
}
