//! How costs grow with keys, limits of a policy, entries of a log, and commands of a pipeline.

use anyhow::Result;
use bench::Effort;
use bench::report::Report;

use crate::{memory, resp};

pub(crate) fn run(effort: Effort, report: &mut Report) -> Result<()> {
    memory::grow(effort, report)?;
    resp::grow(effort, report)
}
