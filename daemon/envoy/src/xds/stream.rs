//! The streams to a control plane, one after another.

use std::sync::Arc;
use std::time::Duration;

use envoy_types::pb::envoy::config::core::v3::Node;
use envoy_types::pb::envoy::config::core::v3::node::UserAgentVersionType;
use envoy_types::pb::envoy::service::discovery::v3::aggregated_discovery_service_client::AggregatedDiscoveryServiceClient;
use envoy_types::pb::envoy::service::discovery::v3::{DiscoveryRequest, DiscoveryResponse};
use envoy_types::pb::google::protobuf::value::Kind;
use envoy_types::pb::google::protobuf::{Struct, Value};
use envoy_types::pb::google::rpc::Status;
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;
use tokio::time::sleep;
use tokio_stream::wrappers::ReceiverStream;
use tollgate_config::{XdsOptions, logged_limits, unused_limits_of_rules};
use tollgate_descriptors::Domains;
use tollgate_engine::Engine;
use tonic::metadata::{
    AsciiMetadataKey, AsciiMetadataValue, BinaryMetadataKey, BinaryMetadataValue, MetadataMap,
};
use tonic::{Code, Request};

use super::connect::connect;
use super::discovery::Discovery;
use super::resources::{self, TYPE_URL};
use crate::endpoint::with_sources;

/// The longest delay before a server that repeats a rejected version is answered.
const MAX_REJECTION_DELAY: Duration = Duration::from_secs(10);

/// Follows a control plane until the task is dropped. `on_update` is called after each accepted
/// configuration.
pub async fn follow(
    options: XdsOptions,
    engine: Arc<Engine>,
    discovery: Arc<Discovery>,
    on_update: impl Fn(),
) {
    let reconnect = Backoff::new(options.backoff_initial, options.backoff_max);
    let max_delay = options.backoff_max.min(MAX_REJECTION_DELAY);
    let mut client = Client {
        rejection: Backoff::new(options.backoff_initial, max_delay),
        options,
        engine,
        discovery,
        on_update,
        reconnect,
        version: String::new(),
        rejected_version: None,
    };
    loop {
        let reason = match client.run_stream().await {
            Ok(()) => "the server ended the stream".to_owned(),
            Err(error) => error,
        };
        if client.discovery.lost(&reason) {
            let server = &client.options.server;
            tracing::error!(
                "control plane {server} unavailable, keeping the configuration: {reason}"
            );
        }
        sleep(client.reconnect.next_delay()).await;
    }
}

/// The client of a control plane.
#[derive(Debug)]
struct Client<F> {
    options: XdsOptions,
    engine: Arc<Engine>,
    discovery: Arc<Discovery>,
    on_update: F,
    reconnect: Backoff,
    /// The version that was accepted last on this stream.
    version: String,
    /// The version that was rejected last.
    rejected_version: Option<String>,
    /// Delays the rejection of a version that was rejected before.
    rejection: Backoff,
}

impl<F: Fn()> Client<F> {
    /// Runs one stream to its end.
    async fn run_stream(&mut self) -> Result<(), String> {
        // A restarted server may number its versions from one again, and would take a version of
        // its predecessor for its own.
        self.version.clear();
        let channel = connect(&self.options).await?;
        self.discovery.connected();
        tracing::info!("control plane {} connected", self.options.server);
        let mut client = AggregatedDiscoveryServiceClient::new(channel)
            .max_decoding_message_size(self.options.max_message);
        let (requests, receiver) = mpsc::channel(1);
        send(&requests, self.request("", None)).await?;
        let mut call = Request::new(ReceiverStream::new(receiver));
        *call.metadata_mut() = metadata_map(&self.options);
        let response =
            client.stream_aggregated_resources(call).await.map_err(|status| describe(&status))?;
        let mut responses = response.into_inner();
        while let Some(response) = responses.message().await.map_err(|status| describe(&status))? {
            if response.type_url != TYPE_URL {
                let kind = response.type_url;
                tracing::warn!("the control plane sent resources of type {kind:?} unrequested");
                continue;
            }
            let reply = self.apply(response).await;
            send(&requests, reply).await?;
        }
        Ok(())
    }

    /// Accepts or rejects a response. Returns the request that reports this to the server.
    async fn apply(&mut self, response: DiscoveryResponse) -> DiscoveryRequest {
        let DiscoveryResponse { version_info, resources, nonce, .. } = response;
        let options = self.engine.active().envoy.read_options();
        // Parsing megabytes would block the runtime.
        let domains = spawn_blocking(move || resources::parse(&resources, &options)).await;
        match domains.unwrap_or_else(|error| Err(error.to_string())) {
            Ok(domains) => {
                self.accept(version_info, domains);
                self.request(&nonce, None)
            }
            Err(reason) => {
                self.reject(version_info, &reason).await;
                self.request(&nonce, Some(reason))
            }
        }
    }

    fn accept(&mut self, version: String, domains: Domains) {
        let count = domains.domains().count();
        tracing::info!(version, domains = count, "control plane configuration applied");
        let unused = unused_limits_of_rules(&domains, &self.engine.active().domains);
        for limit in logged_limits(unused) {
            tracing::warn!("{limit}");
        }
        self.engine.activate_domains(Arc::new(domains));
        self.discovery.accepted();
        (self.on_update)();
        self.version = version;
        self.reconnect.reset();
        self.rejected_version = None;
        self.rejection.reset();
    }

    /// Many servers send a rejected version again at once. The second rejection of it waits.
    async fn reject(&mut self, version: String, reason: &str) {
        if self.discovery.rejected(reason) {
            tracing::error!(
                version,
                "control plane configuration rejected, keeping the previous one: {reason}"
            );
        }
        if self.rejected_version.as_ref() == Some(&version) {
            sleep(self.rejection.next_delay()).await;
        }
        self.rejected_version = Some(version);
    }

    /// A request for all resources, which accepts or rejects the response with this nonce.
    fn request(&self, nonce: &str, rejection: Option<String>) -> DiscoveryRequest {
        DiscoveryRequest {
            version_info: self.version.clone(),
            node: Some(self.node()),
            type_url: TYPE_URL.to_owned(),
            response_nonce: nonce.to_owned(),
            error_detail: rejection.map(|message| Status {
                code: i32::from(Code::InvalidArgument),
                message,
                details: Vec::new(),
            }),
            ..DiscoveryRequest::default()
        }
    }

    fn node(&self) -> Node {
        let text = |text: &String| Value { kind: Some(Kind::StringValue(text.clone())) };
        let metadata = &self.options.metadata;
        let fields = metadata.iter().map(|(name, value)| (name.clone(), text(value))).collect();
        let version = env!("CARGO_PKG_VERSION").to_owned();
        Node {
            id: self.options.node_id.clone(),
            metadata: Some(Struct { fields }),
            user_agent_name: "tollgate".to_owned(),
            user_agent_version_type: Some(UserAgentVersionType::UserAgentVersion(version)),
            ..Node::default()
        }
    }
}

/// Delays that double up to a maximum. Each has up to 50 % jitter, so that daemons that lost the
/// same server do not reconnect at the same time. `tollgate-redis` has a backoff with fixed bounds;
/// sharing it would add to the public API of that library.
#[derive(Clone, Copy, Debug)]
struct Backoff {
    initial: Duration,
    max: Duration,
    next: Duration,
}

impl Backoff {
    /// The jitter that yields the whole delay.
    const MAX_JITTER: u32 = 512;

    fn new(initial: Duration, max: Duration) -> Self {
        Backoff { initial, max, next: initial }
    }

    /// Starts again from the initial delay.
    fn reset(&mut self) {
        self.next = self.initial;
    }

    fn next_delay(&mut self) -> Duration {
        self.next_with_jitter(fastrand::u32(..=Backoff::MAX_JITTER))
    }

    fn next_with_jitter(&mut self, jitter: u32) -> Duration {
        let delay = self.next.min(self.max);
        self.next = delay.saturating_mul(2);
        delay / 2 + delay / (2 * Backoff::MAX_JITTER) * jitter
    }
}

async fn send(
    requests: &mpsc::Sender<DiscoveryRequest>,
    request: DiscoveryRequest,
) -> Result<(), String> {
    requests.send(request).await.map_err(|_| "the stream is broken".to_owned())
}

/// A status with its code and causes.
fn describe(status: &tonic::Status) -> String {
    let text = format!("{:?}: {}", status.code(), status.message());
    match std::error::Error::source(status) {
        Some(source) => format!("{text}: {}", with_sources(source)),
        None => text,
    }
}

/// The configured headers as metadata of the stream.
#[expect(clippy::expect_used, reason = "the configuration validates names and values")]
fn metadata_map(options: &XdsOptions) -> MetadataMap {
    let mut map = MetadataMap::new();
    for (name, value) in options.headers() {
        let name = name.as_str();
        if name.ends_with("-bin") {
            let key: BinaryMetadataKey = name.parse().expect("a valid header name");
            map.append_bin(key, BinaryMetadataValue::from_bytes(value));
        } else {
            let key: AsciiMetadataKey = name.parse().expect("a valid header name");
            let value = AsciiMetadataValue::try_from(value).expect("a valid header value");
            map.append(key, value);
        }
    }
    map
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_the_maximum_with_jitter() {
        let seconds = Duration::from_secs;
        for (jitter, expected) in [(Backoff::MAX_JITTER, [2, 4, 8, 10, 10]), (0, [1, 2, 4, 5, 5])] {
            let mut backoff = Backoff::new(seconds(2), seconds(10));
            for _ in 0..2 {
                let delays = [0; 5].map(|_| backoff.next_with_jitter(jitter));
                assert_eq!(delays, expected.map(seconds));
                backoff.reset();
            }
        }
        let mut random = Backoff::new(seconds(2), seconds(2));
        assert!((seconds(1)..=seconds(2)).contains(&random.next_delay()));
    }
}
