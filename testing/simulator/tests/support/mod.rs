//! Helpers of this crate's tests.

#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    reason = "helpers, of which each test uses some"
)]

use std::time::Duration;

use tollgate_simulator::{Client, Connection, Server};

pub const fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// Sends a command, whose words are separated by spaces; returns the text of its reply.
pub async fn send(connection: &mut Connection, command: &str) -> String {
    let words: Vec<&str> = command.split(' ').collect();
    connection.command(&words).await.unwrap().text()
}

/// Sends a command over a new connection.
pub async fn send_to(client: &Client, server: &Server, command: &str) -> String {
    send(&mut client.connect(server).await.unwrap(), command).await
}
