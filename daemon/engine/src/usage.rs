//! Queries of what policies track about their keys.

use tollgate::Policy;
use tollgate_insight::{KeyRecord, KeysQuery, Page, QueryError};

use crate::config::Scope;
use crate::context::RequestContext;
use crate::error::{Error, ErrorKind, ErrorValue};
use crate::parameter::Parameter;
use crate::resolution::resolve_error;

/// The scopes that permit queries of keys; one of them is enough.
pub const QUERY_SCOPES: &[Scope] = &[Scope::Read];

impl RequestContext<'_> {
    /// The keys of a policy in an order, page by page.
    ///
    /// # Errors
    /// The principal may not read the policy, there is no such policy, or the query fails.
    pub async fn keys(&self, query: KeysQuery<'_>) -> Result<Page, Error> {
        self.principal.authorize(QUERY_SCOPES, "keys")?;
        self.principal.authorize_policy(query.policy)?;
        let known = self.active.policies.get(query.policy);
        known.map_err(|error| resolve_error(&error.into(), query.policy, self.active))?;
        self.active.check_prefix(query.prefix)?;
        Ok(self.engine.insight().keys(query).await?)
    }

    /// What is recorded about a key, whose policy was resolved for this principal. Absent if the
    /// policy tracks nothing, or nothing is recorded.
    ///
    /// # Errors
    /// The store is unavailable.
    pub async fn key_record(
        &self,
        policy: &Policy,
        key: &[u8],
    ) -> Result<Option<KeyRecord>, Error> {
        if self.active.tracking.get(policy).is_none() {
            return Ok(None);
        }
        Ok(self.engine.insight().key(policy.name(), key).await?)
    }
}

impl From<QueryError> for Error {
    fn from(error: QueryError) -> Self {
        let (kind, parameter, value) = match &error {
            QueryError::NotTracked(policy) | QueryError::NoUsage(policy, _) => (
                ErrorKind::BadRequest,
                Parameter::Policy,
                Some(ErrorValue::Text((**policy).into())),
            ),
            QueryError::Limit(_) => (ErrorKind::BadRequest, Parameter::Limit, None),
            QueryError::Prefix(_) => (ErrorKind::BadRequest, Parameter::Prefix, None),
            QueryError::Cursor(_)
            | QueryError::ForeignCursor
            | QueryError::ExpiredCursor
            | QueryError::OtherQuery => (ErrorKind::BadRequest, Parameter::Cursor, None),
            QueryError::Unavailable(_) => {
                return Error::new(ErrorKind::StoreUnavailable, error.to_string());
            }
        };
        let mapped = Error::new(kind, error.to_string()).with_parameter(parameter);
        match value {
            Some(value) => mapped.with_value(value),
            None => mapped,
        }
    }
}
