//! `tollgate config`: the configuration without a daemon.

mod check;

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use tollgate_server::Layers;

use crate::arguments::{Config, ConfigCommand};
use crate::output;

pub(crate) fn run(arguments: &Config) -> Result<ExitCode> {
    match &arguments.command {
        ConfigCommand::Check { files, output } => check::run(files, *output),
        ConfigCommand::Print { config, origins } => print(config.as_deref(), *origins),
        ConfigCommand::Schema => {
            output::print(&tollgate_server::config_schema())?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn print(file: Option<&Path>, origins: bool) -> Result<ExitCode> {
    let layers = file.map_or_else(|| Layers::new().samples(), |file| Layers::new().file(file));
    let layered = layers.environment(std::env::vars_os()).read()?;
    output::print(&layered.print(origins))?;
    Ok(ExitCode::SUCCESS)
}
