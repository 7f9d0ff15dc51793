//! `GET /v1/keys`: the keys of a policy, by what it tracks about them.

use hyper::Request;
use tollgate_config::Privacy;
use tollgate_engine::{ActiveConfig, Engine, Parameter, Remote, RequestContext, Surface};
use tollgate_insight::{KeyRecord, KeyUsage, KeysQuery, Order, Page, Usage};

use super::authentication::{TokenHeader, authenticate};
use super::json::Writer;
use super::object::Object;
use super::origin::RequestHead;
use super::problem::Problem;
use super::reply::{self, Reply};
use super::traceparent;

/// The path of the query.
pub(super) const PATH: &str = "/v1/keys";
/// The parameters of the query.
pub(super) const PARAMETERS: &[Parameter] =
    &[Parameter::Policy, Parameter::Order, Parameter::Prefix, Parameter::Limit, Parameter::Cursor];
/// The keys of a page by default.
pub(super) const DEFAULT_LIMIT: usize = 50;

/// Answers a query. `serves_pages` is whether the listener does.
pub(super) async fn answer<B>(
    engine: &Engine,
    remote: &Remote,
    request: &Request<B>,
    serves_pages: bool,
) -> Result<Reply, Problem> {
    let active = engine.active();
    let head = RequestHead::new(request.method(), request.uri(), request.headers());
    let head = if serves_pages { head.to_pages() } else { head };
    let header = TokenHeader::Authorization;
    let principal = authenticate(engine, &active, remote, head, header).await?;
    head.check_origin(remote, &active)?;
    let (surface, traceparent) = (Surface::Http, traceparent(request.headers()));
    let context = RequestContext { engine, active: &active, principal, surface, traceparent };
    let mut object = Object::from_query(request.uri().query().unwrap_or_default(), PARAMETERS)?;
    if object.take_status().is_some() {
        return Err(Problem::bad_request("status applies to decisions; leave it out").at("status"));
    }
    let mut text = |parameter| object.take(parameter).map(|value| value.text()).transpose();
    let (policy, cursor) = (text(Parameter::Policy)?, text(Parameter::Cursor)?);
    let policy = policy.unwrap_or_default();
    let order = match text(Parameter::Order)? {
        None => Order::Newest,
        Some(order) => Order::from_name(&order).ok_or_else(|| unknown_order(&order))?,
    };
    let limit = object.take(Parameter::Limit).map(|value| value.count()).transpose()?;
    let prefix = object.take(Parameter::Prefix).map(|value| value.bytes()).transpose()?;
    let query = KeysQuery {
        policy: &policy,
        order,
        prefix: prefix.as_deref().unwrap_or_default(),
        cursor: cursor.as_deref(),
        limit: limit.unwrap_or(DEFAULT_LIMIT),
    };
    let page = context.keys(query).await?;
    Ok(reply::json(page_json(&active, &query, &page), None))
}

fn unknown_order(order: &str) -> Problem {
    let names = Order::ALL.map(Order::as_str).join(", ");
    let shown: String = order.chars().take(64).collect();
    let detail = format!("unknown order {shown:?}; expected one of {names}");
    Problem::bad_request(detail)
        .at(Parameter::Order.name())
        .with_value(&serde_json::Value::from(order).to_string())
}

fn page_json(active: &ActiveConfig, query: &KeysQuery<'_>, page: &Page) -> String {
    const KEY_BYTES: usize = 160;
    let mut json = Writer::with_capacity(128 + KEY_BYTES * page.keys.len());
    json.put(r#"{"policy":"#, query.policy);
    json.put(r#","order":"#, query.order.as_str());
    json.list(r#","keys":"#, &page.keys, |json, key| write_key(json, active, key));
    match &page.next {
        Some(cursor) => json.put(r#","cursor":"#, &**cursor),
        None => json.text(r#","cursor":null"#),
    }
    json.text("}");
    json.finish()
}

/// Writes a key as `privacy` permits. One that is not UTF-8 is also written in base64.
fn write_key(json: &mut Writer, active: &ActiveConfig, key: &KeyUsage) {
    let text = match (active.privacy(), str::from_utf8(&key.key)) {
        (Privacy::Plain, Ok(text)) => text.to_owned(),
        _ => active.display_key(&key.key),
    };
    json.text(r#"{"key":"#);
    json.escaped(&text);
    if active.privacy() == Privacy::Plain && str::from_utf8(&key.key).is_err() {
        json.put(r#","key_base64":"#, &*super::value::to_base64(&key.key));
    }
    json.text(",");
    write_usage(json, &key.usage);
    json.text("}");
}

/// Writes totals as members of an object.
fn write_usage(json: &mut Writer, usage: &Usage) {
    json.put(r#""first_seen":"#, usage.first_seen);
    json.put(r#","last_seen":"#, usage.last_seen);
    json.put(r#","allowed":"#, usage.allowed);
    json.put(r#","denied":"#, usage.denied);
    json.put(r#","cost":"#, usage.cost);
}

/// Writes what is recorded about a key, as members of its inspection.
pub(super) fn write_record(json: &mut Writer, record: &KeyRecord) {
    if let Some(usage) = &record.usage {
        json.text(r#","usage":{"#);
        write_usage(json, usage);
        json.text("}");
    }
    json.list(r#","recent":"#, &record.recent, |json, note| {
        json.put(r#"{"time":"#, note.time);
        json.put(r#","cost":"#, note.cost);
        json.put(r#","answer":"#, note.answer.as_str());
        if let Some(text) = &note.text {
            json.text(r#","note":"#);
            json.escaped(text);
        }
        json.text("}");
    });
    if let Some(timeline) = &record.timeline {
        json.put(r#","timeline":{"interval":"#, timeline.interval);
        json.list(r#","intervals":"#, &timeline.intervals, |json, interval| {
            json.put(r#"{"start":"#, interval.start);
            json.put(r#","allowed":"#, interval.allowed);
            json.put(r#","denied":"#, interval.denied);
            json.put(r#","cost":"#, interval.cost);
            json.text("}");
        });
        json.text("}");
    }
}
