//! A connection to a server, and what is sent over it.

mod dial;
mod tls;

use redis::aio::MultiplexedConnection;
use redis::{Cmd, Pipeline, ServerError, Value};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::task::AbortHandle;
use tollgate_store::Failure;

pub(crate) use dial::Dialer;

use crate::ask::Call;
use crate::error;
use crate::script;

/// A connection. It closes when this is dropped, whatever is under way on it.
#[derive(Debug)]
pub(crate) struct Link {
    connection: MultiplexedConnection,
    is_closed: Arc<AtomicBool>,
    driver: AbortHandle,
}

/// Why a command was not answered as it should be.
#[derive(Clone, Debug)]
pub(crate) enum Fault {
    /// By the server; the connection is well.
    Server(ServerError),
    /// The connection is lost.
    Broken(Failure),
}

impl Fault {
    pub(crate) fn failure(&self) -> Failure {
        match self {
            Fault::Server(server) => error::of_server(server),
            Fault::Broken(broken) => broken.clone(),
        }
    }
}

/// How a call is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct How {
    /// To a node that is just being given the keys.
    pub(crate) asks: bool,
    /// With the script before it.
    pub(crate) loads: bool,
}

impl Link {
    /// Whether the other side has closed it.
    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    /// Sends a command.
    pub(crate) async fn command(&self, words: &[impl AsRef<[u8]>]) -> Result<Value, Fault> {
        let mut command = Cmd::new();
        for word in words {
            command.arg(word.as_ref());
        }
        let mut connection = self.connection.clone();
        judged(connection.send_packed_command(&command).await)
    }

    /// Loads the script.
    pub(crate) async fn load(&self) -> Result<(), Fault> {
        self.command(&["SCRIPT", "LOAD", script::TEXT]).await.map(drop)
    }

    /// Sends a call of the script; it is sent when the future is first polled, after all that were
    /// sent before.
    pub(crate) fn call(
        &self,
        call: &Call,
        how: How,
    ) -> impl Future<Output = Result<Value, Fault>> + Send + use<> {
        let mut connection = self.connection.clone();
        let command = command_of(call);
        async move {
            if how == How::default() {
                return judged(connection.send_packed_command(&command).await);
            }
            let mut pipeline = Pipeline::with_capacity(3);
            if how.loads {
                pipeline.cmd("SCRIPT").arg("LOAD").arg(script::TEXT);
            }
            if how.asks {
                pipeline.cmd("ASKING");
            }
            pipeline.add_command(command);
            let count = pipeline.len();
            let replies = connection.send_packed_commands(&pipeline, 0, count).await;
            let mut replies = replies.map_err(|e| Fault::Broken(error::of_call(e)))?;
            let last = judged(Ok(replies.pop().unwrap_or(Value::Nil)));
            // A script that may not be loaded is not known either: the first error is the reason.
            let first = replies.into_iter().find_map(|reply| reply.extract_error().err());
            match (last, first.map(ServerError::try_from)) {
                (Err(Fault::Server(_)), Some(Ok(first))) => Err(Fault::Server(first)),
                (last, _) => last,
            }
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

fn command_of(call: &Call) -> Cmd {
    let words = call.keys.iter().chain(&call.args);
    let size = 64 + words.clone().map(|word| word.len() + 16).sum::<usize>();
    let mut command = Cmd::with_capacity(3 + call.keys.len() + call.args.len(), size);
    command.arg("EVALSHA").arg(script::sha1()).arg(call.keys.len());
    for word in words {
        command.arg(word.as_slice());
    }
    command
}

fn judged(reply: redis::RedisResult<Value>) -> Result<Value, Fault> {
    match reply {
        Ok(Value::ServerError(server_error)) => Err(Fault::Server(server_error)),
        Ok(reply) => Ok(reply),
        Err(inner) => match ServerError::try_from(inner) {
            Ok(value) => Err(Fault::Server(value)),
            Err(value) => Err(Fault::Broken(error::of_call(value))),
        },
    }
}
