//! The client's ends of connections, in place of sockets.

use std::fmt;
use std::future::{Future, poll_fn};
use std::io::{self, Read};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tollgate_redis::{Network, Stream};

use crate::world::Shared;
use crate::world::connection::{Connection, End, Packet};

/// The network as a client sees it.
pub(crate) struct ClientNetwork {
    pub(crate) shared: Arc<Shared>,
    pub(crate) client: usize,
}

impl fmt::Debug for ClientNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientNetwork").field("client", &self.client).finish_non_exhaustive()
    }
}

type Connecting = Pin<Box<dyn Future<Output = io::Result<Box<dyn Stream>>> + Send>>;

impl Network for ClientNetwork {
    fn connect(&self, host: &str, _: u16) -> Connecting {
        let (shared, client, host) = (Arc::clone(&self.shared), self.client, host.to_owned());
        Box::pin(async move {
            let socket: Box<dyn Stream> = Box::new(open(shared, client, &host).await?);
            Ok(socket)
        })
    }
}

/// Connects to a host.
pub(crate) async fn open(shared: Arc<Shared>, client: usize, host: &str) -> io::Result<Socket> {
    let id = shared.with(|state| state.connect(client, host))?;
    let socket = Socket { shared, id };
    poll_fn(|context| socket.poll(context, |connection| connection.is_open.then_some(Ok(()))))
        .await?;
    Ok(socket)
}

/// The client's end of a connection. It closes when this is dropped.
pub(crate) struct Socket {
    shared: Arc<Shared>,
    id: u64,
}

impl Socket {
    /// Polls until `ready` returns a result, or until the connection is lost.
    fn poll<T>(
        &self,
        context: &Context<'_>,
        ready: impl FnOnce(&mut Connection) -> Option<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        self.shared.with(|state| {
            let connection = state.connections.get_mut(&self.id);
            let connection = connection.expect("a connection exists until its client closes it");
            if let Some(result) = ready(connection) {
                return Poll::Ready(result);
            }
            if let Some(kind) = connection.failure {
                return Poll::Ready(Err(kind.into()));
            }
            connection.waker = Some(context.waker().clone());
            Poll::Pending
        })
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.poll(context, |connection| {
            if !connection.inbox.is_empty() {
                let length = connection.inbox.read(buffer.initialize_unfilled());
                return Some(length.map(|length| buffer.advance(length)));
            }
            connection.has_ended.then_some(Ok(()))
        })
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.shared.with(|state| {
            let connection = state.connections.get(&self.id);
            if let Some(kind) = connection.and_then(Connection::write_error) {
                return Poll::Ready(Err(kind.into()));
            }
            state.send(self.id, End::Server, Packet::Bytes(bytes.to_vec()));
            Poll::Ready(Ok(bytes.len()))
        })
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.shared.with(|state| state.shut_down(self.id));
        Poll::Ready(Ok(()))
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        self.shared.with(|state| state.close_client(self.id));
    }
}
