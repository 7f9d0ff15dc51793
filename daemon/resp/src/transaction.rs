//! Commands between `MULTI` and `EXEC`.

use super::command::Command;
use super::failure::Failure;
use super::frames::{Args, OwnedArgs};
use tollgate_config::Bounds;

/// The most bytes of a transaction, in multiples of `limits.body`.
const BODIES: usize = 16;

/// Commands that wait for `EXEC`.
#[derive(Debug, Default)]
pub(super) struct Transaction {
    pub(super) commands: Vec<(&'static Command, OwnedArgs)>,
    bytes: usize,
    /// Whether a command could not be queued, so that none is executed.
    pub(super) has_errors: bool,
}

impl Transaction {
    /// Queues a command for `EXEC`.
    pub(super) fn queue(
        &mut self,
        command: &'static Command,
        args: Args<'_>,
        bounds: &Bounds,
    ) -> Result<(), Failure> {
        if self.has_errors {
            // `EXEC` will fail.
            return Ok(());
        }
        self.bytes = self.bytes.saturating_add(args.bytes());
        let max_bytes = bounds.body.saturating_mul(BODIES);
        if self.commands.len() >= bounds.pipeline || self.bytes > max_bytes {
            self.commands = Vec::new();
            let max = bounds.pipeline;
            return Err(Failure::bad(format!(
                "a transaction has at most {max} commands of {max_bytes} bytes in total; send \
                 several, or raise limits.pipeline or limits.body"
            )));
        }
        self.commands.push((command, OwnedArgs::new(args)));
        Ok(())
    }
}
