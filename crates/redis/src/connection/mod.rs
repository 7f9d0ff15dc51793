//! A connection to a server.

mod dial;
#[cfg(feature = "tls-rustls")]
mod tls;

use redis::aio::MultiplexedConnection;
use redis::{Cmd, Pipeline, ServerError, Value};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::task::AbortHandle;
use tollgate_state::{Failure, FailureKind};

pub(crate) use dial::{Dialer, PushHandler};

use crate::encode::Call;
use crate::error;
use crate::script::ScriptForm;

/// A connection. It closes when this is dropped, even with calls in flight.
#[derive(Debug)]
pub(crate) struct Connection {
    channel: CommandChannel,
    is_closed: Arc<AtomicBool>,
    driver: AbortHandle,
}

/// Sends commands on a connection.
#[derive(Clone, Debug)]
pub(crate) struct CommandChannel {
    connection: MultiplexedConnection,
    /// How the server calls the script.
    form: ScriptForm,
}

/// Why a command failed.
#[derive(Clone, Debug)]
pub(crate) enum CommandError {
    /// The server returned an error; the connection is intact.
    Server(ServerError),
    /// The connection was lost.
    Lost(Failure),
}

impl CommandError {
    pub(crate) fn failure(&self) -> Failure {
        match self {
            CommandError::Server(error) => error::from_server(error),
            CommandError::Lost(failure) => failure.clone(),
        }
    }
}

/// Options of a call.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CallOptions {
    /// Whether to send `ASKING` first, to a node that is importing the slot.
    pub(crate) sends_asking: bool,
    /// Whether to load the script, too.
    pub(crate) loads_script: bool,
}

impl CommandChannel {
    /// Sends a command.
    pub(crate) async fn command(&self, words: &[impl AsRef<[u8]>]) -> Result<Value, CommandError> {
        let mut command = Cmd::new();
        for word in words {
            command.arg(word.as_ref());
        }
        let mut connection = self.connection.clone();
        into_result(connection.send_packed_command(&command).await)
    }

    /// Calls the script. The call is sent when the future is first polled, after all earlier calls.
    pub(crate) fn call(
        &self,
        call: &Call,
        options: CallOptions,
    ) -> impl Future<Output = Result<Value, CommandError>> + Send + use<> {
        let mut connection = self.connection.clone();
        let load = self.form.load_command().filter(|_| options.loads_script);
        let command = command_of(call, self.form.command(options.loads_script));
        async move {
            if load.is_none() && !options.sends_asking {
                return into_result(connection.send_packed_command(&command).await);
            }
            let mut pipeline = Pipeline::with_capacity(3);
            if let Some(load) = load {
                pipeline.add_command(redis::cmd(load[0]).arg(&load[1..]).clone());
            }
            if options.sends_asking {
                pipeline.cmd("ASKING");
            }
            pipeline.add_command(command);
            let count = pipeline.len();
            let replies = connection.send_packed_commands(&pipeline, 0, count).await;
            let mut replies =
                replies.map_err(|error| CommandError::Lost(error::from_call(error)))?;
            let Some(last) = replies.pop() else {
                let message = "no replies to a pipeline";
                return Err(CommandError::Lost(Failure::new(FailureKind::Protocol, message)));
            };
            let last = into_result(Ok(last));
            let is_missing = |error: &CommandError| matches!(error, CommandError::Server(error) if error::is_script_missing(error));
            if load.is_some() && !last.as_ref().is_err_and(is_missing) {
                // Another client may have loaded the library meanwhile, which is an error of this load.
                replies.remove(0);
            }
            // If the script cannot be loaded, the call fails, too: report the first error.
            let first = replies.into_iter().find_map(|reply| reply.extract_error().err());
            match (last, first.map(ServerError::try_from)) {
                (Err(CommandError::Server(_)), Some(Ok(first))) => Err(CommandError::Server(first)),
                (last, _) => last,
            }
        }
    }
}

impl Connection {
    /// Returns a channel for commands.
    pub(crate) fn commands(&self) -> CommandChannel {
        self.channel.clone()
    }

    /// Returns whether the connection is closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    /// Sends a command.
    pub(crate) async fn command(&self, words: &[impl AsRef<[u8]>]) -> Result<Value, CommandError> {
        self.channel.command(words).await
    }

    /// Sends several commands at once; returns the reply to each.
    pub(crate) async fn pipeline(&self, commands: &Pipeline) -> redis::RedisResult<Vec<Value>> {
        self.channel.connection.clone().send_packed_commands(commands, 0, commands.len()).await
    }

    pub(crate) fn form(&self) -> ScriptForm {
        self.channel.form
    }

    pub(crate) fn set_form(&mut self, form: ScriptForm) {
        self.channel.form = form;
    }

    /// Calls the script. The call is sent when the future is first polled, after all earlier calls.
    pub(crate) fn call(
        &self,
        call: &Call,
        options: CallOptions,
    ) -> impl Future<Output = Result<Value, CommandError>> + Send + use<> {
        self.channel.call(call, options)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

fn command_of(call: &Call, (name, script): (&str, &str)) -> Cmd {
    let words = call.keys.iter().chain(&call.args);
    let size = 64 + words.clone().map(|word| word.len() + 16).sum::<usize>();
    let mut command = Cmd::with_capacity(3 + call.keys.len() + call.args.len(), size);
    command.arg(name).arg(script).arg(call.keys.len());
    for word in words {
        command.arg(word.as_slice());
    }
    command
}

pub(crate) fn into_result(reply: redis::RedisResult<Value>) -> Result<Value, CommandError> {
    match reply {
        Ok(Value::ServerError(error)) => Err(CommandError::Server(error)),
        Ok(reply) => Ok(reply),
        Err(error) => match ServerError::try_from(error) {
            Ok(error) => Err(CommandError::Server(error)),
            Err(error) => Err(CommandError::Lost(error::from_call(error))),
        },
    }
}
