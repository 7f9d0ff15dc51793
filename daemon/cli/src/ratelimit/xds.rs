//! The xDS server.

use tollgate_daemon::{XdsOptions, XdsTls};

use super::environment::Environment;

const SERVER: &str = "CONFIG_GRPC_XDS_SERVER_URL";
const HEADERS: &str = "CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS";
/// The bounds of the maximum message size, in bytes.
const MESSAGE_SIZES: (u32, u32) = (1_024, 1 << 30);

/// The server, if it is the source of limits.
pub(super) fn read(environment: &Environment, is_on: bool) -> Option<XdsOptions> {
    let options = options(environment);
    match options {
        Ok(options) => Some(options).filter(|_| is_on),
        Err((name, remedy)) => {
            if is_on {
                environment.reject(name, remedy);
            }
            None
        }
    }
}

#[expect(clippy::expect_used, reason = "the size is bounded")]
fn options(environment: &Environment) -> Result<XdsOptions, (&'static str, String)> {
    let node_id = environment.text("CONFIG_GRPC_XDS_NODE_ID");
    let tls = tls(environment);
    let size =
        environment.integer("XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES", MESSAGE_SIZES.0, MESSAGE_SIZES.1);
    let metadata = environment.text("CONFIG_GRPC_XDS_NODE_METADATA");
    let headers = environment.pairs(HEADERS);
    let times =
        ["XDS_CLIENT_BACKOFF_INITIAL_INTERVAL", "XDS_CLIENT_BACKOFF_MAX_INTERVAL"].map(|name| {
            let time = environment.duration(name);
            environment.get(name).map(|_| time)
        });
    let options = XdsOptions::new(&environment.text(SERVER));
    let mut options = options.map_err(|_| {
        (SERVER, "write HOST:PORT, such as envoy-gateway:18001, without a scheme".to_owned())
    })?;
    for (name, value) in headers {
        options = options.header(&name, &value).map_err(|error| (HEADERS, error))?;
    }
    (options.node_id, options.metadata, options.tls) = (node_id, pairs(&metadata).collect(), tls);
    if let Some(size) = size {
        options.max_message = usize::try_from(size).expect("at most MESSAGE_SIZES.1");
    }
    let [initial, max] = times;
    options.backoff_initial = initial.unwrap_or(options.backoff_initial);
    options.backoff_max = max.unwrap_or(options.backoff_max);
    Ok(options)
}

fn tls(environment: &Environment) -> Option<XdsTls> {
    let is_on = environment.bool("CONFIG_GRPC_XDS_SERVER_USE_TLS");
    let file = |name| environment.non_empty(name).map(Into::into);
    let tls = XdsTls {
        ca: file("CONFIG_GRPC_XDS_SERVER_TLS_CACERT"),
        cert: file("CONFIG_GRPC_XDS_CLIENT_TLS_CERT"),
        key: file("CONFIG_GRPC_XDS_CLIENT_TLS_KEY"),
        san: environment.non_empty("CONFIG_GRPC_XDS_SERVER_TLS_SAN"),
    };
    if is_on && tls.cert.is_some() != tls.key.is_some() {
        let missing = match tls.cert {
            None => "CONFIG_GRPC_XDS_CLIENT_TLS_CERT",
            Some(_) => "CONFIG_GRPC_XDS_CLIENT_TLS_KEY",
        };
        environment.reject(missing, "set both certificate and key, or neither");
    }
    is_on.then_some(tls)
}

/// `NAME=VALUE`, separated by commas; other parts are ignored, as in envoyproxy/ratelimit.
fn pairs(text: &str) -> impl Iterator<Item = (String, String)> {
    let pairs = text.split(',').filter_map(|part| part.split_once('='));
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::environment::tests::environment;
    use super::*;

    #[test]
    fn variables_configure_the_server() {
        let environment = environment(
            "CONFIG_GRPC_XDS_SERVER_URL=envoy-gateway:18001 CONFIG_GRPC_XDS_NODE_ID=envoy-ratelimit \
             CONFIG_GRPC_XDS_NODE_METADATA=zone=a,nothing,rack=b=c \
             CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS=authorization:s3cret \
             CONFIG_GRPC_XDS_SERVER_USE_TLS=true CONFIG_GRPC_XDS_CLIENT_TLS_CERT=/certs/tls.crt \
             CONFIG_GRPC_XDS_CLIENT_TLS_KEY=/certs/tls.key CONFIG_GRPC_XDS_SERVER_TLS_SAN=gateway \
             CONFIG_GRPC_XDS_SERVER_TLS_CACERT=/certs/ca.crt \
             XDS_CLIENT_BACKOFF_INITIAL_INTERVAL=20ms XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES=5000",
        );
        let options = read(&environment, true).unwrap();
        assert!(environment.errors().is_empty(), "{:?}", environment.errors());
        assert_eq!(
            (&*options.server, &*options.node_id),
            ("envoy-gateway:18001", "envoy-ratelimit")
        );
        let metadata: Vec<_> = options.metadata.iter().map(|(a, b)| format!("{a}:{b}")).collect();
        assert_eq!(metadata, ["rack:b=c", "zone:a"]);
        assert_eq!(options.backoff_initial, Duration::from_millis(20));
        assert_eq!(options.backoff_max, XdsOptions::new("a:1").unwrap().backoff_max);
        assert_eq!(options.max_message, 5_000);
        let shown = format!("{options:?}");
        assert!(shown.contains("authorization") && !shown.contains("s3cret"), "{shown}");
        let tls = options.tls.unwrap();
        assert_eq!(tls.ca.as_deref(), Some("/certs/ca.crt".as_ref()));
        assert_eq!(tls.san.as_deref(), Some("gateway"));
    }

    #[test]
    fn invalid_values_are_errors_if_the_server_is_used() {
        for (lines, message) in [
            (
                "CONFIG_GRPC_XDS_SERVER_URL=http://a:1",
                "CONFIG_GRPC_XDS_SERVER_URL is \"http://a:1\"",
            ),
            (
                "CONFIG_GRPC_XDS_SERVER_URL=a",
                "CONFIG_GRPC_XDS_SERVER_URL is \"a\"; write HOST:PORT",
            ),
            ("CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS=a", HEADERS),
            ("CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS=a=b:c", HEADERS),
            ("XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES=1", "XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES is \"1\""),
            (
                "CONFIG_GRPC_XDS_SERVER_USE_TLS=1 CONFIG_GRPC_XDS_CLIENT_TLS_KEY=/k",
                "CONFIG_GRPC_XDS_CLIENT_TLS_CERT is not set; set both",
            ),
        ] {
            let environment = environment(lines);
            read(&environment, true);
            let error = &environment.errors()[0];
            assert!(error.starts_with(message), "{lines}: {error}");
        }
        let off = environment("CONFIG_GRPC_XDS_SERVER_URL=http://a:1");
        assert_eq!(read(&off, false), None);
        assert!(off.errors().is_empty());
    }
}
