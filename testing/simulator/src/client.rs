//! Clients: machines on which stores run, and connections for single commands.

use std::fmt;
use std::io;
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tollgate_redis::RedisOptions;
use tollgate_testkit::Reply;

use crate::links::Links;
use crate::network::{self, ClientNetwork, Socket};
use crate::resp;
use crate::server::Server;
use crate::world::Shared;

/// A machine on which stores run.
#[derive(Clone, Debug)]
pub struct Client {
    world: Arc<Shared>,
    index: usize,
}

impl Client {
    pub(crate) fn new(world: &Arc<Shared>, index: usize) -> Self {
        Client { world: Arc::clone(world), index }
    }

    /// Returns the index, which [`ScriptCall::client`](crate::ScriptCall::client) has.
    #[must_use]
    pub fn index(&self) -> usize {
        self.index
    }

    /// Returns options of a store on this client.
    #[must_use]
    pub fn options(&self) -> RedisOptions {
        let shared = Arc::clone(&self.world);
        let network = ClientNetwork { shared, client: self.index };
        RedisOptions { network: Some(Arc::new(network)), ..RedisOptions::default() }
    }

    /// Returns the links to all servers.
    #[must_use]
    pub fn links(&self) -> Links {
        Links::new(&self.world, Some(self.index), None)
    }

    /// Returns the link to a server.
    #[must_use]
    pub fn link_to(&self, server: &Server) -> Links {
        Links::new(&self.world, Some(self.index), Some(server.index()))
    }

    /// Connects to a server, for single commands.
    ///
    /// # Errors
    /// The server refuses the connection.
    pub async fn connect(&self, server: &Server) -> io::Result<Connection> {
        let shared = Arc::clone(&self.world);
        let socket = network::open(shared, self.index, &server.host()).await?;
        Ok(Connection { socket, received: Vec::new() })
    }
}

/// A connection for single commands.
pub struct Connection {
    socket: Socket,
    /// Bytes of replies that have not been returned.
    received: Vec<u8>,
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").finish_non_exhaustive()
    }
}

impl Connection {
    /// Sends a command and waits for its reply, which may be an error of the server.
    ///
    /// # Errors
    /// The connection is lost.
    pub async fn command(&mut self, words: &[impl AsRef<[u8]>]) -> io::Result<Reply> {
        self.send(words).await?;
        self.receive().await
    }

    /// Sends a command.
    ///
    /// # Errors
    /// The connection is lost.
    pub async fn send(&mut self, words: &[impl AsRef<[u8]>]) -> io::Result<()> {
        self.socket.write_all(&resp::encode_command(words)).await
    }

    /// Waits for a reply.
    ///
    /// # Errors
    /// The connection is lost.
    pub async fn receive(&mut self) -> io::Result<Reply> {
        loop {
            let mut read = Vec::new();
            match Reply::read(&mut self.received.as_slice(), &mut read) {
                Ok(reply) => {
                    self.received.drain(..read.len());
                    return Ok(reply);
                }
                Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => return Err(error),
                Err(_) => {}
            }
            if self.socket.read_buf(&mut self.received).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
}
