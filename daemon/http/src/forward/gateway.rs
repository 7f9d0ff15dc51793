//! The gateways, and how each describes its client's request.

use hyper::header::HeaderMap;
use hyper::http::request::Parts;

use self::PropertySource::{Header, Request};
use super::PREFIX;
use tollgate_rules::{AddressFormat, AddressHeader};

/// How a gateway describes its client's request. Each property has one source, and no other is
/// read.
#[derive(Debug)]
pub(crate) struct GatewayProtocol {
    /// Its name in the path.
    pub(super) name: &'static str,
    method: PropertySource,
    /// The path and query.
    target: PropertySource,
    host: PropertySource,
    pub(super) address: AddressHeader,
    /// The line of the gateway's configuration that sends the address.
    pub(super) address_line: &'static str,
    /// Whether it joins the lines of a header by a comma, while the application gets each.
    pub(super) joins_headers: bool,
}

/// Where a property of the client's request is found.
#[derive(Clone, Copy, Debug)]
enum PropertySource {
    /// In a header, which this line of the gateway's configuration sets.
    Header(&'static str, &'static str),
    /// In the same place as in the client's request: the gateway forwards it unchanged.
    Request,
}

/// A header that describes the client's request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GatewayHeader {
    pub(crate) name: &'static str,
    pub(crate) description: &'static str,
    /// Whether every request needs it, and not only one that a rule reads it for.
    pub(crate) is_required: bool,
}

/// `auth_request` of nginx; its configuration sets the headers.
const NGINX: GatewayProtocol = GatewayProtocol {
    name: "nginx",
    method: Header("X-Original-Method", "proxy_set_header X-Original-Method $request_method;"),
    target: Header("X-Original-URI", "proxy_set_header X-Original-URI $request_uri;"),
    host: Header("X-Original-Host", "proxy_set_header X-Original-Host $host;"),
    address: AddressHeader { name: "X-Real-IP", format: AddressFormat::Single },
    address_line: "proxy_set_header X-Real-IP $remote_addr;",
    joins_headers: false,
};

/// `forward_auth` of Caddy, which sets its headers itself.
const CADDY: GatewayProtocol = GatewayProtocol {
    name: "caddy",
    method: Header("X-Forwarded-Method", "header_up X-Forwarded-Method {method}"),
    target: Header("X-Forwarded-Uri", "header_up X-Forwarded-Uri {uri}"),
    host: Header("X-Forwarded-Host", "header_up X-Forwarded-Host {hostport}"),
    address: AddressHeader { name: "X-Forwarded-For", format: AddressFormat::List },
    address_line: "header_up X-Forwarded-For {remote_host}",
    joins_headers: false,
};

/// The setting of Traefik that replaces the headers of clients.
const TRAEFIK_LINE: &str = "trustForwardHeader: false";

/// `forwardAuth` of Traefik, which sets its headers itself.
const TRAEFIK: GatewayProtocol = GatewayProtocol {
    name: "traefik",
    method: Header("X-Forwarded-Method", TRAEFIK_LINE),
    target: Header("X-Forwarded-Uri", TRAEFIK_LINE),
    host: Header("X-Forwarded-Host", TRAEFIK_LINE),
    address: AddressHeader { name: "X-Forwarded-For", format: AddressFormat::List },
    address_line: TRAEFIK_LINE,
    joins_headers: false,
};

/// A Lua action of HAProxy; its configuration sets the headers.
const HAPROXY: GatewayProtocol = GatewayProtocol {
    name: "haproxy",
    method: Header("X-Forwarded-Method", r#"["x-forwarded-method"] = { txn.f:method() }"#),
    target: Header("X-Forwarded-Uri", r#"["x-forwarded-uri"] = { txn.f:pathq() }"#),
    host: Header("X-Forwarded-Host", r#"["x-forwarded-host"] = { txn.f:req_hdr("host") }"#),
    address: AddressHeader { name: "X-Forwarded-For", format: AddressFormat::List },
    address_line: r#"["x-forwarded-for"] = { txn.f:src() }"#,
    joins_headers: false,
};

/// `ext_authz` of Envoy over HTTP, which forwards the request with a prefix before its path.
const ENVOY: GatewayProtocol = GatewayProtocol {
    name: "envoy",
    method: Request,
    target: Request,
    host: Request,
    address: AddressHeader { name: "X-Forwarded-For", format: AddressFormat::List },
    address_line: "allowed_headers: { patterns: [{ exact: x-forwarded-for }] }, and \
                   use_remote_address: true",
    joins_headers: true,
};

/// Every gateway.
pub(crate) static GATEWAYS: [GatewayProtocol; 5] = [NGINX, CADDY, TRAEFIK, HAPROXY, ENVOY];

impl GatewayProtocol {
    /// Its path, without the client's path that some gateways append.
    pub(crate) fn path(&self) -> String {
        format!("{PREFIX}{}", self.name)
    }

    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// The headers that describe the client's request, without those that only rules read.
    pub(crate) fn headers(&self) -> impl Iterator<Item = GatewayHeader> {
        let header = |source: PropertySource, description, is_required| match source {
            Header(name, _) => Some(GatewayHeader { name, description, is_required }),
            Request => None,
        };
        let host = "The host of the client's request, where a rule reads it.";
        let own_host = GatewayHeader { name: "Host", description: host, is_required: false };
        let address = GatewayHeader {
            name: self.address.name,
            description: "The client's address, where a rule reads it.",
            is_required: false,
        };
        let headers = [
            header(self.method, "The method of the client's request.", true),
            header(self.target, "The path and query of the client's request.", true),
            header(self.host, host, false).or(Some(own_host)),
            Some(address),
        ];
        headers.into_iter().flatten()
    }

    /// Whether the query is Tollgate's, and not part of the client's request.
    pub(crate) fn has_query(&self) -> bool {
        matches!(self.target, Header(..))
    }

    pub(super) fn method<'a>(&self, head: &'a Parts) -> Result<&'a str, String> {
        match self.method {
            Header(name, line) => str::from_utf8(non_empty_header(&head.headers, name, line)?)
                .map_err(|_| format!("{name} is not valid UTF-8")),
            Request => Ok(head.method.as_str()),
        }
    }

    /// The path and query, as the client sent them.
    pub(super) fn target<'a>(&self, head: &'a Parts) -> Result<&'a [u8], String> {
        match self.target {
            Header(name, line) => non_empty_header(&head.headers, name, line),
            Request => {
                let whole = head.uri.path_and_query().map_or("", |target| target.as_str());
                let target = whole
                    .strip_prefix(PREFIX)
                    .and_then(|target| target.strip_prefix(self.name))
                    .unwrap_or_else(|| unreachable!("the route begins with the prefix"));
                Ok(target.as_bytes())
            }
        }
    }

    /// The host. Empty if the client sent none or an invalid one: no rule matches such a host, but
    /// a client must not be able to prevent a decision.
    pub(super) fn host<'a>(&self, head: &'a Parts) -> Result<&'a str, String> {
        let host = match (self.host, head.uri.authority()) {
            (Header(name, line), _) => single_header(&head.headers, name, line)?,
            // HTTP/2 has the host in the URI.
            (Request, Some(authority)) => authority.as_str().as_bytes(),
            (Request, None) => single_header(&head.headers, "Host", "one Host")?,
        };
        Ok(str::from_utf8(host).unwrap_or_default())
    }
}

/// The value of a header that must occur once and not be empty.
fn non_empty_header<'a>(
    headers: &'a HeaderMap,
    name: &str,
    line: &str,
) -> Result<&'a [u8], String> {
    let value = single_header(headers, name, line)?;
    if value.is_empty() { Err(missing(name, line)) } else { Ok(value) }
}

/// The value of a header that must occur once.
fn single_header<'a>(headers: &'a HeaderMap, name: &str, line: &str) -> Result<&'a [u8], String> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => Ok(value.as_bytes()),
        (Some(_), Some(_)) => Err(format!(
            "{name} occurs twice, and one may be the client's; configure the gateway with {line}, \
             which replaces the client's"
        )),
        (None, _) => Err(missing(name, line)),
    }
}

fn missing(name: &str, line: &str) -> String {
    format!("{name} is missing; configure the gateway with {line}")
}
