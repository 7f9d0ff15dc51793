//! Third-party clients that tests run as programs.

use std::process::Command;

use crate::program::{find_on_path, report_missing, workspace};

/// A client program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientKind {
    /// <https://redis.io/docs/latest/develop/tools/cli/>
    RedisCli,
    /// Python with redis-py, gRPC, Envoy's interface, Flask, FastAPI and Django.
    Python,
    /// Node.js with node-redis, Express and two versions of ioredis, `ioredis5` and `ioredis6`.
    Node,
    /// Node.js with puppeteer-core and axe-core. The variable `CHROMIUM` has the path of the browser.
    Chromium,
}

/// How to find a client.
#[derive(Debug)]
struct Program {
    name: &'static str,
    /// Modules that the client needs, relative to the workspace.
    modules: &'static [&'static str],
    /// The environment variable with the module path, and its value relative to the workspace.
    module_path: Option<(&'static str, &'static str)>,
    /// The command to install it.
    remedy: &'static str,
    /// Whether `cargo xtask test` installs it in CI.
    is_packaged: bool,
}

impl ClientKind {
    fn program(self) -> Program {
        match self {
            Self::RedisCli => Program {
                name: "redis-cli",
                modules: &[],
                module_path: None,
                remedy: "on Debian or Ubuntu: sudo apt-get install redis-tools",
                is_packaged: true,
            },
            Self::Python => Program {
                name: "python3",
                modules: &["target/tools/python/redis", "target/tools/python/fastapi"],
                module_path: Some(("PYTHONPATH", "target/tools/python")),
                remedy: "cargo xtask test installs what it needs",
                is_packaged: false,
            },
            Self::Node => Program {
                name: "node",
                modules: &["target/tools/node/node_modules/express"],
                module_path: Some(("NODE_PATH", "target/tools/node/node_modules")),
                remedy: "cargo xtask test installs what it needs",
                is_packaged: false,
            },
            Self::Chromium => Program {
                name: "node",
                modules: &[
                    "target/tools/node/node_modules/puppeteer-core",
                    "target/tools/node/node_modules/axe-core",
                ],
                module_path: Some(("NODE_PATH", "target/tools/node/node_modules")),
                remedy: "cargo xtask test installs what it needs",
                is_packaged: false,
            },
        }
    }

    /// The program without arguments. If it is not installed, standard error reports a skipped test
    /// and the command to install it.
    #[track_caller]
    pub fn command(self) -> Option<Command> {
        let program = self.program();
        let mut command = program.command();
        if self == Self::Chromium {
            let Some(chromium) = find_on_path("chromium") else {
                let remedy = "on Debian or Ubuntu: sudo apt-get install chromium";
                report_missing("chromium", remedy, true);
                return None;
            };
            command = command.map(|mut command| {
                command.env("CHROMIUM", chromium);
                command
            });
        }
        if command.is_none() {
            report_missing(program.name, program.remedy, program.is_packaged);
        }
        command
    }
}

impl Program {
    fn command(&self) -> Option<Command> {
        let root = workspace();
        find_on_path(self.name)?;
        if !self.modules.iter().all(|module| root.join(module).exists()) {
            return None;
        }
        let mut command = Command::new(self.name);
        if let Some((variable, folder)) = self.module_path {
            command.env(variable, root.join(folder));
        }
        Some(command)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn program_without_its_modules_is_missing() {
        let check = |name, modules, expected: bool| {
            let module_path = Some(("PYTHONPATH", "crates"));
            let program = Program { name, modules, module_path, remedy: "", is_packaged: false };
            let command = program.command();
            assert_eq!(command.is_some(), expected, "{program:?}");
            let environment = command.iter().flat_map(Command::get_envs).next();
            assert_eq!(environment.is_some(), expected, "{program:?}");
        };
        check("sh", &[], true);
        check("sh", &["testing/testkit"], true);
        check("sh", &["crates/no-such-crate"], false);
        check("tollgate-no-such-program", &[], false);
    }
}
