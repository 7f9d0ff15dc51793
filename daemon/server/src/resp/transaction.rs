//! Commands between `MULTI` and `EXEC`.

use super::failure::Failure;
use super::frames::{Args, Kept};
use super::table::Command;
use crate::config::Bounds;

/// What all commands of a transaction may have together, in bodies.
const BODIES: usize = 16;

/// The commands that wait for `EXEC`.
#[derive(Debug, Default)]
pub(super) struct Transaction {
    pub(super) commands: Vec<(&'static Command, Kept)>,
    bytes: usize,
    /// Whether one could not be queued, so that none is to be done.
    pub(super) is_flawed: bool,
}

impl Transaction {
    /// Keeps a command for `EXEC`.
    pub(super) fn keep(
        &mut self,
        command: &'static Command,
        args: Args<'_>,
        bounds: &Bounds,
    ) -> Result<(), Failure> {
        if self.is_flawed {
            // It will not be done, so it need not be kept.
            return Ok(());
        }
        self.bytes = self.bytes.saturating_add(args.bytes());
        let most_bytes = bounds.body.saturating_mul(BODIES);
        if self.commands.len() >= bounds.pipeline || self.bytes > most_bytes {
            self.commands = Vec::new();
            let most = bounds.pipeline;
            return Err(Failure::bad(format!(
                "a transaction is at most {most} commands of {most_bytes} bytes together; send \
                 several, or raise limits.pipeline or limits.body"
            )));
        }
        self.commands.push((command, Kept::of(args)));
        Ok(())
    }
}
