//! The default names of fields: the first one that a line has is used.

/// Tollgate's name of each field, and its names in logs. A dot leads into an object, or is part of the
/// name. Names are compared without regard to case, and `-` equals `_`.
///
/// They are the names of nginx (its variables), Caddy, Traefik, Envoy, HAProxy, Apache and the Elastic Common
/// Schema, as their documentation shows them.
pub(super) const DEFAULTS: [(&str, &[&str]); 10] = [
    (
        "time",
        &[
            "time",
            "ts",
            "timestamp",
            "@timestamp",
            "StartUTC",
            "start_time",
            "msec",
            "time_iso8601",
            "time_local",
            "date",
        ],
    ),
    (
        "ip",
        &[
            "ip",
            "client_ip",
            "request.client_ip",
            "remote_addr",
            "remote_ip",
            "request.remote_ip",
            "ClientHost",
            "downstream_remote_address_without_port",
            "client.ip",
            "source.ip",
            "client.address",
            "clientip",
            "remoteip",
            "remote_host",
            "client",
            "address",
            "downstream_remote_address",
            "request.remote_addr",
        ],
    ),
    (
        "method",
        &[
            "method",
            "request.method",
            "request_method",
            "RequestMethod",
            "http_method",
            "http.request.method",
            "verb",
        ],
    ),
    (
        "path",
        &[
            "path",
            "request.uri",
            "request_uri",
            "RequestPath",
            "uri",
            "x_envoy_origin_path",
            "url.original",
            "url.path",
            "target",
            "request_path",
            "http_path",
            "url",
        ],
    ),
    (
        "host",
        &[
            "host",
            "request.host",
            "http_host",
            "RequestHost",
            "authority",
            ":authority",
            "server_name",
            "vhost",
            "url.domain",
        ],
    ),
    (
        "user",
        &[
            "user",
            "user_id",
            "remote_user",
            "ClientUsername",
            "user.name",
            "user.id",
            "username",
            "auth",
        ],
    ),
    (
        "status",
        &[
            "status",
            "DownstreamStatus",
            "response_code",
            "status_code",
            "OriginStatus",
            "http.response.status_code",
            "response.status",
            "http_status",
            "response",
        ],
    ),
    ("key", &["key"]),
    ("cost", &["cost"]),
    ("note", &["note"]),
];

/// The request line, `GET / HTTP/1.1`, for logs without method and path.
pub(super) const REQUEST: &[&str] = &["request", "request_line"];

/// The names of a header; `*` is replaced by its name.
pub(super) const HEADERS: [&str; 7] = [
    "request.headers.*",
    "headers.*",
    "request_headers.*",
    "http_*",
    "request_*",
    "http.request.headers.*",
    "*",
];
