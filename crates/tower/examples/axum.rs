//! An axum server with limits for clients, logins and requests in flight.
//!
//! ```sh
//! cargo run -p tollgate-tower --features axum --example axum -- 127.0.0.1:3000
//! curl -i localhost:3000
//! ```

#![expect(clippy::print_stdout, reason = "an example prints its results")]

use std::env;
use std::net::SocketAddr;

use axum::extract::Path;
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Extension, Router};
use tokio::net::TcpListener;
use tollgate::{MemoryLimiter, Policy};
use tollgate_tower::{Admission, KeyExtractor, RateLimitLayer, Rule};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let limiter = MemoryLimiter::new();
    let client = KeyExtractor::peer_address;

    // Ten requests a minute and three at once, of each client.
    let requests = Policy::new("requests", ["10/min burst 3".parse()?])?;
    let requests = RateLimitLayer::new(limiter.clone(), requests, client());

    // Two failed logins an hour, of each client and to each account: both are counted, or neither.
    let by_client = Policy::new("logins-of-client", ["2/h log".parse()?])?;
    let to_account = Policy::new("logins-to-account", ["2/h log".parse()?])?;
    let account = KeyExtractor::from_fn(|head| Some(head.uri.path().to_owned()));
    let rules = [Rule::new(by_client, client()), Rule::new(to_account, account)];
    let logins = RateLimitLayer::with_rules(limiter, rules)
        .refund_if(|response| response.status.is_success());

    let app = Router::new()
        .route("/", get(index).layer(requests))
        .route("/login/{user}", post(login).layer(logins));
    let address = env::args().nth(1).unwrap_or_else(|| "127.0.0.1:3000".to_owned());
    let listener = TcpListener::bind(address).await?;
    println!("listening on {}", listener.local_addr()?);
    axum::serve(listener, app.into_make_service_with_connect_info::<SocketAddr>()).await?;
    Ok(())
}

async fn index(Extension(admission): Extension<Admission>) -> String {
    format!("{} requests remain\n", admission.remaining().unwrap_or_default())
}

async fn login(Path(user): Path<String>, password: String) -> StatusCode {
    if password == format!("{user}'s password") { StatusCode::OK } else { StatusCode::UNAUTHORIZED }
}
