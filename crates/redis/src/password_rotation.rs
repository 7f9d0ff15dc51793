//! The replacement of a password while connections are open.
//!
//! A task reads the file regularly. When the password has changed, it logs in again on each
//! connection, one after the other, while requests continue. A server that rejects a password keeps
//! the connection with the previous login, so a wrong password costs nothing until the connection is
//! lost.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::AbortHandle;
use tokio::time::Instant;

use crate::connection::{CommandChannel, CommandError};
use crate::context::StoreContext;
use crate::credentials::Credentials;

/// The interval between reads of the file, and between attempts to log in.
const INTERVAL: Duration = Duration::from_secs(1);
/// The interval between attempts to log in with a password that servers keep rejecting.
const MAX_INTERVAL: Duration = Duration::from_secs(30);
/// How often each connection logs in again: a connection that was being made during the first time
/// has the previous password.
const ROUNDS: u8 = 2;

/// Starts the task; `None` if the password is not in a file. `connections` returns the connections
/// that are open.
pub(crate) fn start_rotation(
    credentials: &Arc<Credentials>,
    context: &Arc<StoreContext>,
    connections: impl Fn() -> Vec<CommandChannel> + Send + 'static,
) -> Option<AbortHandle> {
    if !credentials.has_password_file() {
        return None;
    }
    let (credentials, context) = (Arc::clone(credentials), Arc::clone(context));
    let task = tokio::spawn(async move {
        let mut rotation = Rotation::default();
        loop {
            tokio::time::sleep(INTERVAL).await;
            if rotation.is_due(&credentials).await {
                rotation.log_in(&credentials, &context, connections()).await;
            }
        }
    });
    Some(task.abort_handle())
}

/// The password that the task introduces.
#[derive(Debug, Default)]
struct Rotation {
    /// The last password in the file.
    password: Option<String>,
    /// How often each connection still logs in with it.
    rounds: u8,
    /// The time of the next attempt, after a server has rejected the password.
    retry: Option<(Instant, Duration)>,
}

impl Rotation {
    /// Reads the file. Returns whether to log in on all connections.
    async fn is_due(&mut self, credentials: &Credentials) -> bool {
        let password = match credentials.read_file().await {
            Ok(password) => password,
            Err(failure) => {
                credentials.set_failure(Some(failure));
                return false;
            }
        };
        if self.password.as_ref() != Some(&password) {
            // The connections made so far have the first password.
            let is_first = self.password.is_none() && credentials.may_be_in_use(&password);
            self.rounds = if is_first { 0 } else { ROUNDS };
            self.password = Some(password);
            self.retry = None;
            credentials.set_failure(None);
        } else if self.rounds == 0 {
            // The file could not be read for a while.
            credentials.set_failure(None);
        }
        self.rounds > 0 && self.retry.is_none_or(|(time, _)| time <= Instant::now())
    }

    /// Logs in on each connection, one after the other.
    async fn log_in(
        &mut self,
        credentials: &Credentials,
        context: &StoreContext,
        connections: Vec<CommandChannel>,
    ) {
        let Some(password) = &self.password else { return };
        let (mut is_accepted, mut rejection) = (false, None);
        for connection in connections {
            match log_in(&connection, credentials.username(), password).await {
                Ok(()) => {
                    credentials.record_accepted(password);
                    is_accepted = true;
                }
                Err(error @ CommandError::Server(_)) => rejection = Some(error.failure()),
                // Its successor logs in when it is made.
                Err(CommandError::Lost(_)) => {}
            }
        }
        let is_rejected = rejection.is_some();
        credentials.set_failure(rejection);
        if is_rejected {
            context.counters.lock().rejected_passwords += 1;
            let delay = self.retry.map_or(INTERVAL, |(_, delay)| (delay * 2).min(MAX_INTERVAL));
            self.retry = Some((Instant::now() + delay, delay));
            return;
        }
        self.retry = None;
        // Without a connection, the password is not known to be right.
        self.rounds -= u8::from(is_accepted);
        if self.rounds == 0 {
            context.counters.lock().replaced_passwords += 1;
        }
    }
}

/// Logs in again on a connection.
async fn log_in(
    connection: &CommandChannel,
    username: Option<&str>,
    password: &str,
) -> Result<(), CommandError> {
    let words: Vec<_> = ["AUTH"].into_iter().chain(username).chain([password]).collect();
    connection.command(&words).await.map(drop)
}
