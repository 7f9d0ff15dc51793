//! The layer, and its configuration.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Response;
use http::request::Parts;
use http::response::Parts as ResponseParts;
use tollgate::{Cost, Limiter, Policy, StoreError};
use tollgate_headers::HeaderStyle;
use tower_layer::Layer;

use crate::key::KeyExtractor;
use crate::rejection::{BodyFormat, Rejection};
use crate::rule::Rule;
use crate::service::RateLimit;

/// The most checks that are decided together.
const MAX_RULES: usize = 32;
const DEFAULT_MAX_DELAY: Duration = Duration::from_secs(30);

/// A layer that limits the rate of the requests to a service. Clones, and the services of clones,
/// share the limiter and so the usage of all keys.
///
/// # Examples
/// ```
/// use tollgate::{MemoryLimiter, Policy};
/// use tollgate_tower::{KeyExtractor, RateLimitLayer};
///
/// let policy = Policy::new("api", ["10/s burst 20".parse()?])?;
/// let layer = RateLimitLayer::new(MemoryLimiter::new(), policy, KeyExtractor::peer_address());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct RateLimitLayer {
    config: Arc<Config>,
}

/// A function of the head of a response.
type FromResponse<T> = Arc<dyn Fn(&ResponseParts) -> T + Send + Sync>;
/// A function that reports an error of the store after the admission.
pub(crate) type ReportError = Arc<dyn Fn(&StoreError) + Send + Sync>;
/// A function that maps the default response to a rejected request.
type MapRejection = dyn Fn(&Rejection, &Parts, Response<Bytes>) -> Response<Bytes> + Send + Sync;

/// What the services of a layer share.
#[derive(Clone)]
pub(crate) struct Config {
    pub(crate) limiter: Limiter,
    pub(crate) rules: Vec<Rule>,
    pub(crate) header_styles: Vec<HeaderStyle>,
    pub(crate) max_delay: Duration,
    pub(crate) body_format: BodyFormat,
    pub(crate) charging: Charging,
    pub(crate) on_error: ReportError,
    map_rejection: Option<Arc<MapRejection>>,
}

/// When and how much a request is charged.
#[derive(Clone, Default)]
pub(crate) enum Charging {
    /// The cost, before the inner service is called.
    #[default]
    Before,
    /// The cost before, which is refunded after certain responses.
    RefundIf(FromResponse<bool>),
    /// Nothing before, and the cost after certain responses.
    ChargeIf(FromResponse<bool>),
    /// An estimate before, which is replaced by the cost of the response.
    Settle(FromResponse<Option<Cost>>),
}

impl RateLimitLayer {
    /// A layer with one rule: this policy for the key of each request.
    ///
    /// # Panics
    /// Panics if the policy has no [name](Policy::is_named).
    pub fn new(limiter: impl Into<Limiter>, policy: Policy, key: KeyExtractor) -> Self {
        RateLimitLayer::with_rules(limiter, [Rule::new(policy, key)])
    }

    /// A layer with several rules, which are checked together: a request is admitted if all rules
    /// admit it, and otherwise no rule is charged.
    ///
    /// # Panics
    /// Panics if there are more than 32 rules.
    pub fn with_rules(limiter: impl Into<Limiter>, rules: impl IntoIterator<Item = Rule>) -> Self {
        let rules: Vec<_> = rules.into_iter().collect();
        assert!(rules.len() <= MAX_RULES, "a layer has at most {MAX_RULES} rules");
        RateLimitLayer {
            config: Arc::new(Config {
                limiter: limiter.into(),
                rules,
                header_styles: vec![HeaderStyle::Draft11],
                max_delay: DEFAULT_MAX_DELAY,
                body_format: BodyFormat::Json,
                charging: Charging::Before,
                on_error: report_error(|_| ()),
                map_rejection: None,
            }),
        }
    }

    fn change(mut self, change: impl FnOnce(&mut Config)) -> Self {
        change(Arc::make_mut(&mut self.config));
        self
    }

    /// Sets the styles of the rate limit headers of all responses. The default is
    /// [`HeaderStyle::Draft11`]: `RateLimit-Policy` and `RateLimit`. An empty list writes none;
    /// `Retry-After` is always written to a denial with a known end.
    ///
    /// If the response has such headers already, from a layer further inside or an upstream server,
    /// those of the draft are appended, and the others are kept.
    pub fn headers(self, styles: impl IntoIterator<Item = HeaderStyle>) -> Self {
        self.change(|config| config.header_styles = styles.into_iter().collect())
    }

    /// Sets the longest time that a request waits in a queue, such as that of `20/s queue 100`; the
    /// default is 30 s. A request that would have to wait longer is denied and refunded. Its
    /// `Retry-After` is the time after which it would wait no longer than this.
    pub fn max_delay(self, delay: Duration) -> Self {
        self.change(|config| config.max_delay = delay)
    }

    /// Sets the format of the bodies of rejections; the default is [`BodyFormat::Json`].
    pub fn body_format(self, format: BodyFormat) -> Self {
        self.change(|config| config.body_format = format)
    }

    /// Changes or replaces the response to a rejected request. The function receives the reason, the
    /// head of the request, and the default response with all its headers. It is not called for gRPC
    /// requests, whose clients understand only the default.
    ///
    /// # Examples
    /// ```
    /// use http::{Response, StatusCode};
    /// # use tollgate::{MemoryLimiter, Policy};
    /// # use tollgate_tower::{KeyExtractor, RateLimitLayer, Rejection};
    /// # let policy = Policy::new("api", ["10/s".parse().unwrap()]).unwrap();
    /// # let layer = RateLimitLayer::new(MemoryLimiter::new(), policy, KeyExtractor::global());
    /// let layer = layer.map_rejection(|rejection, _, mut response| {
    ///     if let Rejection::Denied(denial) = rejection {
    ///         *response.body_mut() = format!("slow down: {:?}", denial.retry_after()).into();
    ///         if denial.is_unavailable() {
    ///             *response.status_mut() = StatusCode::BAD_GATEWAY;
    ///         }
    ///     }
    ///     response
    /// });
    /// ```
    pub fn map_rejection(
        self,
        map: impl Fn(&Rejection, &Parts, Response<Bytes>) -> Response<Bytes> + Send + Sync + 'static,
    ) -> Self {
        self.change(|config| config.map_rejection = Some(Arc::new(map)))
    }

    /// Refunds the cost if the function returns true for the head of the response, such as for a
    /// server error.
    ///
    /// The request is charged before the inner service is called, so that concurrent requests never
    /// exceed the limit. To count failed logins only, refund the successful ones. A request whose
    /// client disconnects before the response, or whose service fails without a response, stays
    /// charged.
    ///
    /// This replaces [`charge_if`](Self::charge_if) and [`settle`](Self::settle): a layer has one of
    /// the three.
    ///
    /// # Examples
    /// ```
    /// # use tollgate::{MemoryLimiter, Policy};
    /// # use tollgate_tower::{KeyExtractor, RateLimitLayer};
    /// // Five failed logins in 15 minutes.
    /// let policy = Policy::new("login", ["5/15min log".parse()?])?;
    /// let layer = RateLimitLayer::new(MemoryLimiter::new(), policy, KeyExtractor::peer_address())
    ///     .refund_if(|response| response.status.is_success());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn refund_if(
        self,
        refund: impl Fn(&ResponseParts) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.change(|config| config.charging = Charging::RefundIf(Arc::new(refund)))
    }

    /// Charges the cost only if the function returns true for the head of the response.
    ///
    /// Before the inner service is called, the limits are checked without a charge; the charge
    /// afterwards may exceed what remains, up to a debt of one capacity. Concurrent requests can all
    /// pass the check before the first of them is charged; [`refund_if`](Self::refund_if) is exact.
    /// A request whose client disconnects before the response, or whose service fails without a
    /// response, is charged. Concurrency limits are checked, but take no lease.
    pub fn charge_if(
        self,
        charge: impl Fn(&ResponseParts) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.change(|config| config.charging = Charging::ChargeIf(Arc::new(charge)))
    }

    /// Replaces the cost by the one that the function finds in the head of the response, in all rules
    /// without a concurrency limit. Before the inner service is called, the cost of each rule is
    /// charged as an estimate. The difference is refunded, or charged regardless of what remains, up
    /// to a debt of one capacity. For `None`, or without a response, the estimate stays charged.
    ///
    /// # Examples
    /// ```
    /// # use tollgate::{MemoryLimiter, Policy};
    /// # use tollgate_tower::{KeyExtractor, RateLimitLayer};
    /// use tollgate::Cost;
    ///
    /// /// The tokens that an answer took; the handler inserts it into the response's extensions.
    /// #[derive(Clone)]
    /// struct Tokens(u32);
    ///
    /// # let policy = Policy::new("tokens", ["10000/min".parse().unwrap()]).unwrap();
    /// # let layer = RateLimitLayer::new(MemoryLimiter::new(), policy, KeyExtractor::global());
    /// let layer = layer.settle(|response| {
    ///     response.extensions.get::<Tokens>().map(|tokens| Cost::from(tokens.0))
    /// });
    /// ```
    pub fn settle(
        self,
        cost: impl Fn(&ResponseParts) -> Option<Cost> + Send + Sync + 'static,
    ) -> Self {
        self.change(|config| config.charging = Charging::Settle(Arc::new(cost)))
    }

    /// Calls a function with each error of the store after a request was admitted: when it is
    /// refunded, charged or settled, or when its lease is renewed or released. The response is not
    /// affected. Use it to log such errors.
    ///
    /// An error before a request is admitted needs no function: the policy's
    /// [`OnStoreError`](tollgate::OnStoreError) decides.
    pub fn on_error(self, report: impl Fn(&StoreError) + Send + Sync + 'static) -> Self {
        self.change(|config| config.on_error = report_error(report))
    }
}

impl Config {
    pub(crate) fn map_rejection(
        &self,
        rejection: &Rejection,
        head: &Parts,
        response: Response<Bytes>,
    ) -> Response<Bytes> {
        match &self.map_rejection {
            Some(map) => map(rejection, head, response),
            None => response,
        }
    }
}

/// Records each error as an event before it calls `report`.
pub(crate) fn report_error(report: impl Fn(&StoreError) + Send + Sync + 'static) -> ReportError {
    Arc::new(move |error| {
        #[cfg(feature = "tracing")]
        tracing::debug!(target: "tollgate_tower", %error, "the store failed after the admission");
        report(error);
    })
}

impl<S> Layer<S> for RateLimitLayer {
    type Service = RateLimit<S>;

    fn layer(&self, inner: S) -> RateLimit<S> {
        RateLimit::with_config(inner, Arc::clone(&self.config))
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("rules", &self.rules)
            .field("header_styles", &self.header_styles)
            .field("max_delay", &self.max_delay)
            .field("body_format", &self.body_format)
            .finish_non_exhaustive()
    }
}
