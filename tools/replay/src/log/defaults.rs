//! Where a field is looked for if nobody says so: the first that a line has is taken.

/// Our name of a field, and others' for it. A point leads into an object, or is part of the name. Case
/// says nothing, and `-` is `_`.
///
/// They are those of nginx (by the names of its variables), Caddy, Traefik, Envoy, HAProxy, Apache and
/// the Elastic Common Schema, in the forms that their documentation shows.
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

/// The line of the request, `GET / HTTP/1.1`: where a log has neither method nor path, they are in it.
pub(super) const REQUEST: &[&str] = &["request", "request_line"];

/// Where a header is looked for, with its name in place of `*`.
pub(super) const HEADERS: [&str; 7] = [
    "request.headers.*",
    "headers.*",
    "request_headers.*",
    "http_*",
    "request_*",
    "http.request.headers.*",
    "*",
];
