//! A server that decides nothing: what tonic costs at the least. This program is that server if it is
//! started with `--constant PORT`.

use anyhow::Result;
use envoy_types::pb::envoy::service::ratelimit::v3 as rls;
use rls::rate_limit_response::{Code, DescriptorStatus};
use rls::rate_limit_service_server::{RateLimitService, RateLimitServiceServer};
use tonic::transport::Server;
use tonic::{Request, Response, Status};

pub(crate) const FLAG: &str = "--constant";

pub(crate) fn port_asked_for() -> Option<u16> {
    let mut words = std::env::args().skip_while(|arg| arg != FLAG).skip(1);
    words.next()?.parse().ok()
}

#[derive(Debug)]
struct Constant;

#[tonic::async_trait]
impl RateLimitService for Constant {
    async fn should_rate_limit(
        &self,
        request: Request<rls::RateLimitRequest>,
    ) -> Result<Response<rls::RateLimitResponse>, Status> {
        let status = DescriptorStatus {
            code: Code::Ok.into(),
            limit_remaining: 1_000_000,
            ..DescriptorStatus::default()
        };
        let statuses = vec![status; request.get_ref().descriptors.len()];
        let overall_code = Code::Ok.into();
        Ok(Response::new(rls::RateLimitResponse { overall_code, statuses, ..Default::default() }))
    }
}

pub(crate) fn serve(port: u16) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let server = Server::builder().add_service(RateLimitServiceServer::new(Constant));
    Ok(runtime.block_on(server.serve(([127, 0, 0, 1], port).into()))?)
}
