//! The keys that requests are counted under.

use std::borrow::Cow;
use std::fmt;
use std::future::Future;
use std::sync::Arc;

use http::header::HeaderName;
use http::request::Parts;
use tollgate::KeyBuf;
use tollgate::task::BoxFuture;

use crate::BoxError;
use crate::address::ClientAddress;
use crate::rule::FromHead;

/// A key, or `None` if the request has none.
type Extracted = Result<Option<Vec<u8>>, BoxError>;

/// Finds the key of a request: the client, account or resource whose requests are counted.
///
/// A rule has other answers for a request without a key, [`Rule::on_missing`](crate::Rule::on_missing),
/// and for a request whose key cannot be read, [`Rule::on_invalid`](crate::Rule::on_invalid). Both
/// reject the request by default. An empty key is a missing key.
///
/// # Examples
/// ```
/// use tollgate_tower::KeyExtractor;
///
/// let peer = KeyExtractor::peer_address();
/// let tenant_and_path = KeyExtractor::join([KeyExtractor::header("x-tenant"), KeyExtractor::path()]);
/// // The user that an authentication layer has put into the request's extensions.
/// # #[derive(Clone)] struct User { id: u64 }
/// let user = KeyExtractor::extension(|user: &User| user.id.to_string());
/// // The user, or the address of clients that are not authenticated.
/// let client = user.or(KeyExtractor::peer_address());
/// ```
#[derive(Clone)]
pub struct KeyExtractor {
    /// The name of the source, which precedes the value in a key of [`KeyExtractor::or`].
    tag: Cow<'static, str>,
    source: Source,
}

#[derive(Clone)]
enum Source {
    Sync(FromHead<Extracted>),
    Async(FromHead<BoxFuture<Extracted>>),
    First(Arc<[KeyExtractor]>),
    Joined(Arc<[KeyExtractor]>),
    #[cfg(feature = "hash")]
    Hashed(Arc<KeyExtractor>),
}

/// Why the key of a request cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RepeatedHeader;

impl fmt::Display for RepeatedHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the header of the key is present more than once; send it once")
    }
}

impl std::error::Error for RepeatedHeader {}

impl KeyExtractor {
    fn sync(
        tag: impl Into<Cow<'static, str>>,
        extract: impl Fn(&Parts) -> Extracted + Send + Sync + 'static,
    ) -> Self {
        KeyExtractor { tag: tag.into(), source: Source::Sync(Arc::new(extract)) }
    }

    /// The address of the peer, for a server that clients connect to directly. An IPv6 address is
    /// replaced by its network of 64 bits, because a client usually has all its addresses.
    ///
    /// The address is read from the request's extensions: `ConnectInfo<SocketAddr>` of axum with the
    /// feature `axum`, `TcpConnectInfo` of tonic with the feature `tonic`, or a plain
    /// [`SocketAddr`](std::net::SocketAddr) that a hyper server inserts.
    ///
    /// Behind a proxy all clients have the proxy's address; use
    /// [`client_address`](Self::client_address) there.
    #[must_use]
    pub fn peer_address() -> Self {
        ClientAddress::peer().into()
    }

    /// The address of the client behind these trusted proxies, from `X-Forwarded-For`. See
    /// [`ClientAddress`], which also has other headers.
    #[must_use]
    pub fn client_address(trusted: tollgate_headers::Networks) -> Self {
        ClientAddress::behind(trusted).into()
    }

    pub(crate) fn address(address: ClientAddress) -> Self {
        #[cfg(feature = "tracing")]
        let warned = std::sync::Once::new();
        KeyExtractor::sync("ip", move |parts| {
            let key = address.extract(parts)?;
            #[cfg(feature = "tracing")]
            if key.is_none() {
                warned.call_once(warn_of_missing_address);
            }
            Ok(key)
        })
    }

    /// The value of a header. A header that is present more than once is invalid.
    ///
    /// Clients choose their headers, so limit a header only if something before this layer has
    /// verified it, or limit the address as well: a client that sends a new value each time would
    /// otherwise have a new limit each time.
    ///
    /// # Panics
    /// Panics if the name is not a header name in lower case.
    #[must_use]
    pub fn header(name: &'static str) -> Self {
        let name = HeaderName::from_static(name);
        KeyExtractor::sync(format!("header.{name}"), move |parts| {
            let mut values = parts.headers.get_all(&name).iter();
            match (values.next(), values.next()) {
                (value, None) => Ok(value.map(|value| value.as_bytes().to_vec())),
                (_, Some(_)) => Err(RepeatedHeader.into()),
            }
        })
    }

    /// The hash of a header that contains a secret, such as an API key: `header(name).hashed()`.
    ///
    /// # Panics
    /// Panics if the name is not a header name in lower case.
    #[cfg(feature = "hash")]
    #[must_use]
    pub fn api_key(name: &'static str) -> Self {
        KeyExtractor::header(name).hashed()
    }

    /// The path of the request, unchanged. Clients can invent paths; `matched_path` of axum has as many
    /// values as there are routes.
    #[must_use]
    pub fn path() -> Self {
        KeyExtractor::sync("path", |parts| Ok(Some(parts.uri.path().as_bytes().to_vec())))
    }

    /// The route of axum that matches the request, such as `/users/{id}`. It is missing in a layer
    /// around the whole router; add the layer with `Router::layer` or `route_layer`.
    #[cfg(feature = "axum")]
    #[must_use]
    pub fn matched_path() -> Self {
        KeyExtractor::sync("path", |parts| {
            let path = parts.extensions.get::<axum::extract::MatchedPath>();
            Ok(path.map(|path| path.as_str().as_bytes().to_vec()))
        })
    }

    /// A value of the request's extensions, such as the user that an authentication layer has found.
    /// It is missing if there is no value of this type.
    #[must_use]
    pub fn extension<T, K>(key: impl Fn(&T) -> K + Send + Sync + 'static) -> Self
    where
        T: Clone + Send + Sync + 'static,
        K: Into<Vec<u8>>,
    {
        KeyExtractor::sync("extension", move |parts| {
            Ok(parts.extensions.get::<T>().map(|value| key(value).into()))
        })
    }

    /// The same key for all requests.
    #[must_use]
    pub fn global() -> Self {
        KeyExtractor::sync("global", |_| Ok(Some(b"global".to_vec())))
    }

    /// A function of the head of the request; `None` if the request has no key.
    #[must_use]
    pub fn from_fn<K: Into<Vec<u8>>>(
        key: impl Fn(&Parts) -> Option<K> + Send + Sync + 'static,
    ) -> Self {
        KeyExtractor::sync("custom", move |parts| Ok(key(parts).map(Into::into)))
    }

    /// A function of the head of the request that may fail; the request is then invalid.
    #[must_use]
    pub fn try_from_fn<K: Into<Vec<u8>>, E: Into<BoxError>>(
        key: impl Fn(&Parts) -> Result<Option<K>, E> + Send + Sync + 'static,
    ) -> Self {
        KeyExtractor::sync("custom", move |parts| {
            key(parts).map(|key| key.map(Into::into)).map_err(Into::into)
        })
    }

    /// An asynchronous function of the head of the request, such as a lookup in a session store. The
    /// future does not borrow the request: copy what it needs before it begins.
    ///
    /// # Examples
    /// ```
    /// use tollgate_tower::KeyExtractor;
    ///
    /// # async fn session_user(token: String) -> Result<Option<String>, std::io::Error> { Ok(None) }
    /// let user = KeyExtractor::from_async_fn(|parts| {
    ///     let token = parts.headers.get("authorization").and_then(|value| value.to_str().ok());
    ///     let token = token.map(str::to_owned);
    ///     async move {
    ///         match token {
    ///             Some(token) => session_user(token).await,
    ///             None => Ok(None),
    ///         }
    ///     }
    /// });
    /// ```
    #[must_use]
    pub fn from_async_fn<F, K, E>(key: impl Fn(&Parts) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<Option<K>, E>> + Send + 'static,
        K: Into<Vec<u8>>,
        E: Into<BoxError>,
    {
        let extract = move |parts: &Parts| -> BoxFuture<Extracted> {
            let key = key(parts);
            Box::pin(async move { key.await.map(|key| key.map(Into::into)).map_err(Into::into) })
        };
        KeyExtractor { tag: "custom".into(), source: Source::Async(Arc::new(extract)) }
    }

    /// The key of this extractor, or that of another one if it is missing. The name of the source
    /// precedes the value, such as `header.x-user=42` or `ip=203.0.113.7`, so that a client cannot
    /// send a header that is the address of another client.
    #[must_use]
    pub fn or(self, other: KeyExtractor) -> Self {
        let mut all = match self.source {
            Source::First(first) => first.to_vec(),
            _ => vec![self],
        };
        all.push(other);
        KeyExtractor { tag: "custom".into(), source: Source::First(all.into()) }
    }

    /// The keys of several extractors, joined as by [`KeyBuf::join`]. It is missing if one of them
    /// is.
    #[must_use]
    pub fn join(parts: impl IntoIterator<Item = KeyExtractor>) -> Self {
        let parts = parts.into_iter().collect();
        KeyExtractor { tag: "custom".into(), source: Source::Joined(parts) }
    }

    /// The first 128 bits of the SHA-256 of the key, in hexadecimal digits, so that the store does
    /// not contain the secret.
    #[cfg(feature = "hash")]
    #[must_use]
    pub fn hashed(self) -> Self {
        KeyExtractor { tag: self.tag.clone(), source: Source::Hashed(Arc::new(self)) }
    }

    pub(crate) async fn extract(&self, parts: &Parts) -> Extracted {
        let key = match &self.source {
            Source::Sync(extract) => extract(parts)?,
            Source::Async(extract) => extract(parts).await?,
            Source::First(all) => {
                let mut first = None;
                for extractor in all.iter() {
                    if let Some(key) = Box::pin(extractor.extract(parts)).await? {
                        first = Some([extractor.tag.as_bytes(), b"=", &key].concat());
                        break;
                    }
                }
                first
            }
            Source::Joined(all) => {
                let mut joined = Vec::with_capacity(all.len());
                for extractor in all.iter() {
                    let Some(key) = Box::pin(extractor.extract(parts)).await? else {
                        return Ok(None);
                    };
                    joined.push(key);
                }
                match joined.is_empty() {
                    true => None,
                    false => Some(KeyBuf::join(joined)?.key().as_bytes().to_vec()),
                }
            }
            #[cfg(feature = "hash")]
            Source::Hashed(plain) => Box::pin(plain.extract(parts)).await?.map(|key| hash(&key)),
        };
        Ok(key.filter(|key| !key.is_empty()))
    }
}

#[cfg(feature = "tracing")]
fn warn_of_missing_address() {
    tracing::warn!(
        target: "tollgate_tower",
        "a request has no peer address: with axum, serve \
         app.into_make_service_with_connect_info::<SocketAddr>(); with hyper, insert the peer's SocketAddr \
         into the extensions of the request"
    );
}

#[cfg(feature = "hash")]
fn hash(key: &[u8]) -> Vec<u8> {
    use sha2::{Digest, Sha256};

    const HEX: &[u8; 16] = b"0123456789abcdef";
    let digest = Sha256::digest(key);
    let digits = digest.iter().take(16).flat_map(|byte| [byte >> 4, byte & 0xf]);
    digits.map(|digit| HEX[usize::from(digit)]).collect()
}

impl fmt::Debug for KeyExtractor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.source {
            Source::Sync(_) | Source::Async(_) => write!(f, "KeyExtractor({})", self.tag),
            Source::First(all) => f.debug_tuple("First").field(all).finish(),
            Source::Joined(all) => f.debug_tuple("Joined").field(all).finish(),
            #[cfg(feature = "hash")]
            Source::Hashed(plain) => f.debug_tuple("Hashed").field(plain).finish(),
        }
    }
}
