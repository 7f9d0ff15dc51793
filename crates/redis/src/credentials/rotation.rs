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

use super::Credentials;
use crate::connection::{CommandChannel, CommandError};
use crate::context::StoreContext;

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
    credentials.login.password_file.as_ref()?;
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
                credentials.lock().failure = Some(failure);
                return false;
            }
        };
        if self.password.as_ref() != Some(&password) {
            let mut state = credentials.lock();
            let is_in_use = state.current.as_ref().is_none_or(|current| *current == password);
            // The connections made so far have the first password.
            let is_first = self.password.is_none() && is_in_use;
            self.rounds = if is_first { 0 } else { ROUNDS };
            self.password = Some(password);
            self.retry = None;
            state.failure = None;
        } else if self.rounds == 0 {
            // The file could not be read for a while.
            credentials.lock().failure = None;
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
            match credentials.authenticate(&connection, password).await {
                Ok(()) => {
                    credentials.record_accepted(password);
                    is_accepted = true;
                }
                Err(error @ CommandError::Server(_)) => rejection = Some(error.failure()),
                // Its successor logs in when it is made.
                Err(CommandError::Lost(_)) => {}
            }
        }
        credentials.lock().failure.clone_from(&rejection);
        if rejection.is_some() {
            context.counters.lock().rejected_passwords += 1;
            let delay = self.retry.map_or(INTERVAL, |(_, delay)| (delay * 2).min(MAX_INTERVAL));
            self.retry = Some((Instant::now() + delay, delay));
            return;
        }
        self.retry = None;
        // Without a connection, the password is not known to be right.
        self.rounds -= u8::from(is_accepted);
        if self.rounds == 0 {
            credentials.lock().previous = None;
            context.counters.lock().replaced_passwords += 1;
        }
    }
}
