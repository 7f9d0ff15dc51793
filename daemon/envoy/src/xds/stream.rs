//! One stream: asking, taking what comes, and saying what became of it.

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
use tonic::metadata::{
    AsciiMetadataKey, AsciiMetadataValue, BinaryMetadataKey, BinaryMetadataValue, MetadataMap,
};
use tonic::{Code, Request};

use super::answer::{self, TYPE_URL};
use super::backoff::Backoff;
use super::connect::{connect, whole};
use tollgate_engine::Engine;

use super::discovery::Discovery;
use tollgate_config::XdsOptions;
use tollgate_descriptors::Domains;

/// The longest wait before a server is told for another time that it sends what was refused.
const MAX_PAUSE: Duration = Duration::from_secs(10);

/// The streams to a server, one after the other.
#[derive(Debug)]
pub(super) struct Stream<F> {
    options: XdsOptions,
    engine: Arc<Engine>,
    discovery: Arc<Discovery>,
    on_update: F,
    backoff: Backoff,
    /// The version that holds, on this stream.
    version: String,
    refused: Refused,
}

/// What was refused last.
#[derive(Debug)]
struct Refused {
    version: Option<String>,
    pause: Backoff,
}

impl<F: Fn()> Stream<F> {
    pub(super) fn new(
        options: XdsOptions,
        engine: Arc<Engine>,
        discovery: Arc<Discovery>,
        on_update: F,
    ) -> Self {
        let backoff = Backoff::new(options.backoff_initial, options.backoff_max);
        let most = options.backoff_max.min(MAX_PAUSE);
        let refused = Refused { version: None, pause: Backoff::new(options.backoff_initial, most) };
        Stream { options, engine, discovery, on_update, backoff, version: String::new(), refused }
    }

    /// Notes why the stream has ended. How long to wait before the next.
    pub(super) fn lost(&mut self, why: &str) -> Duration {
        let server = &self.options.server;
        if self.discovery.lost(why) {
            tracing::error!("control plane {server} unavailable, keeping the configuration: {why}");
        }
        self.backoff.next()
    }

    /// Runs a stream to its end. Why it has ended.
    pub(super) async fn run(&mut self) -> String {
        match self.try_run().await {
            Ok(()) => "it has ended the stream".to_owned(),
            Err(why) => why,
        }
    }

    async fn try_run(&mut self) -> Result<(), String> {
        // A restarted server may count its versions from one again, and would then think
        // that what it says is known. So each stream begins with none.
        self.version.clear();
        let channel = connect(&self.options).await?;
        self.discovery.connected();
        tracing::info!("control plane {} connected", self.options.server);
        let mut client = AggregatedDiscoveryServiceClient::new(channel)
            .max_decoding_message_size(self.options.max_message);
        let (asking, asked) = mpsc::channel(1);
        ask(&asking, self.request("", None)).await?;
        let mut request = Request::new(ReceiverStream::new(asked));
        *request.metadata_mut() = metadata_map(&self.options);
        let opened = client.stream_aggregated_resources(request).await;
        let mut answers = opened.map_err(|error| said(&error))?.into_inner();
        while let Some(answer) = answers.message().await.map_err(|error| said(&error))? {
            if answer.type_url != TYPE_URL {
                tracing::warn!(
                    "the control plane sent {:?}, which was not asked for",
                    answer.type_url
                );
                continue;
            }
            let verdict = self.take(answer).await;
            ask(&asking, verdict).await?;
        }
        Ok(())
    }

    /// Takes an answer, and says to the server what became of it.
    async fn take(&mut self, answer: DiscoveryResponse) -> DiscoveryRequest {
        let DiscoveryResponse { version_info, resources, nonce, .. } = answer;
        let read = self.engine.active().envoy.read_options();
        // It may have megabytes.
        let domains = spawn_blocking(move || answer::read(&resources, &read)).await;
        match domains.unwrap_or_else(|error| Err(error.to_string())) {
            Ok(domains) => {
                self.hold(version_info, domains);
                self.request(&nonce, None)
            }
            Err(why) => {
                self.refuse(version_info, &why).await;
                self.request(&nonce, Some(why))
            }
        }
    }

    fn hold(&mut self, version: String, domains: Domains) {
        let count = domains.domains().count();
        tracing::info!(version, domains = count, "control plane configuration applied");
        self.engine.activate_domains(Arc::new(domains));
        self.discovery.accepted();
        (self.on_update)();
        self.version = version;
        self.backoff.reset();
        self.refused.version = None;
        self.refused.pause.reset();
    }

    /// Many servers answer a refusal with the same again, at once: then it waits before it refuses
    /// that.
    async fn refuse(&mut self, version: String, why: &str) {
        if self.discovery.refused(why) {
            tracing::error!(
                version,
                "control plane configuration rejected, keeping the previous one: {why}"
            );
        }
        if self.refused.version.as_ref() == Some(&version) {
            sleep(self.refused.pause.next()).await;
        }
        self.refused.version = Some(version);
    }

    /// Asks for all there is, and says what became of the answer with this nonce.
    fn request(&self, nonce: &str, refusal: Option<String>) -> DiscoveryRequest {
        DiscoveryRequest {
            version_info: self.version.clone(),
            node: Some(self.node()),
            type_url: TYPE_URL.to_owned(),
            response_nonce: nonce.to_owned(),
            error_detail: refusal.map(|message| Status {
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

async fn ask(
    asking: &mpsc::Sender<DiscoveryRequest>,
    request: DiscoveryRequest,
) -> Result<(), String> {
    asking.send(request).await.map_err(|_| "the stream is broken".to_owned())
}

/// What a status says, with what lies under it.
fn said(status: &tonic::Status) -> String {
    let words = format!("{:?}: {}", status.code(), status.message());
    match std::error::Error::source(status) {
        Some(under) => format!("{words}: {}", whole(under)),
        None => words,
    }
}

/// The headers of the configuration as metadata of the stream.
#[expect(clippy::expect_used, reason = "the configuration has checked names and values")]
fn metadata_map(options: &XdsOptions) -> MetadataMap {
    let mut map = MetadataMap::new();
    for (name, value) in options.headers() {
        let name = name.as_str();
        if name.ends_with("-bin") {
            let key: BinaryMetadataKey = name.parse().expect("a checked header name");
            map.append_bin(key, BinaryMetadataValue::from_bytes(value));
        } else {
            let key: AsciiMetadataKey = name.parse().expect("a checked header name");
            let value = AsciiMetadataValue::try_from(value).expect("a checked header value");
            map.append(key, value);
        }
    }
    map
}
