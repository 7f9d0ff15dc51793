//! A gRPC server, the health service of tonic, that limits the calls of each client.
//!
//! ```sh
//! cargo run -p tollgate-tower --features tonic --example tonic -- 127.0.0.1:50051
//! grpcurl -plaintext localhost:50051 grpc.health.v1.Health/Check
//! ```

#![expect(clippy::print_stdout, reason = "an example prints its results")]

use std::env;

use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tollgate::{MemoryLimiter, Policy};
use tollgate_tower::{KeyExtractor, RateLimitLayer};
use tonic::transport::Server;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let policy = Policy::new("health", ["2/min burst 2".parse()?])?;
    let layer = RateLimitLayer::new(MemoryLimiter::new(), policy, KeyExtractor::peer_address());
    let (_reporter, health) = tonic_health::server::health_reporter();

    let address = env::args().nth(1).unwrap_or_else(|| "127.0.0.1:50051".to_owned());
    let listener = TcpListener::bind(address).await?;
    println!("listening on {}", listener.local_addr()?);
    let server = Server::builder().layer(layer).add_service(health);
    server.serve_with_incoming(TcpListenerStream::new(listener)).await?;
    Ok(())
}
