//! Rejections of gRPC requests: a response that consists of a status alone.

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use http::HeaderMap;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use http::request::Parts;
use tollgate::Micros;

use crate::rejection::Rejection;

const STATUS: HeaderName = HeaderName::from_static("grpc-status");
const MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
const DETAILS: HeaderName = HeaderName::from_static("grpc-status-details-bin");
const RETRY_INFO_URL: &str = "type.googleapis.com/google.rpc.RetryInfo";

/// The content type of a gRPC request, which its response has too.
pub(crate) fn content_type(head: &Parts) -> Option<&HeaderValue> {
    let content_type = head.headers.get(CONTENT_TYPE)?;
    let rest = content_type.as_bytes().strip_prefix(b"application/grpc")?;
    matches!(rest.first(), None | Some(b'+' | b';' | b'-')).then_some(content_type)
}

/// Adds the status of a rejection to the headers of a response with the HTTP status 200.
pub(crate) fn insert_status(
    headers: &mut HeaderMap,
    content_type: &HeaderValue,
    rejection: &Rejection,
) {
    let code: u8 = match rejection {
        Rejection::Denied(denial) if denial.is_unavailable() => 14, // UNAVAILABLE
        Rejection::Denied(_) => 8,                                  // RESOURCE_EXHAUSTED
        Rejection::MissingKey | Rejection::Invalid(_) => 3,         // INVALID_ARGUMENT
        Rejection::Failed(_) => 13,                                 // INTERNAL
    };
    headers.insert(CONTENT_TYPE, content_type.clone());
    headers.insert(STATUS, u16::from(code).into());
    // It is ASCII without `%`, so that it needs no percent encoding.
    let detail = rejection.detail();
    if let Ok(message) = HeaderValue::from_str(&detail) {
        headers.insert(MESSAGE, message);
    }
    let Rejection::Denied(denial) = rejection else { return };
    let Some(retry_after) = denial.retry_after.filter(|_| !denial.is_unavailable()) else { return };
    let status = encode_status(code, &detail, retry_after);
    if let Ok(details) = HeaderValue::from_str(&STANDARD_NO_PAD.encode(status)) {
        headers.insert(DETAILS, details);
    }
}

/// A `google.rpc.Status` with a `google.rpc.RetryInfo`, in the encoding of protobuf.
fn encode_status(code: u8, message: &str, retry_delay: Micros) -> Vec<u8> {
    // Duration: seconds = 1, nanos = 2.
    let mut duration = Vec::new();
    integer(&mut duration, 1, retry_delay.get() / 1_000_000);
    integer(&mut duration, 2, retry_delay.get() % 1_000_000 * 1_000);
    // RetryInfo: retry_delay = 1.
    let mut retry_info = Vec::new();
    bytes(&mut retry_info, 1, &duration);
    // Any: type_url = 1, value = 2.
    let mut any = Vec::new();
    bytes(&mut any, 1, RETRY_INFO_URL.as_bytes());
    bytes(&mut any, 2, &retry_info);
    // Status: code = 1, message = 2, details = 3.
    let mut status = Vec::new();
    integer(&mut status, 1, code.into());
    bytes(&mut status, 2, message.as_bytes());
    bytes(&mut status, 3, &any);
    status
}

/// Appends a field of type varint; 0 is the default, which is left out.
fn integer(message: &mut Vec<u8>, field: u8, value: u64) {
    if value > 0 {
        message.push(field << 3);
        varint(message, value);
    }
}

/// Appends a field of bytes, a string or a message.
fn bytes(message: &mut Vec<u8>, field: u8, value: &[u8]) {
    message.push(field << 3 | 2);
    varint(message, u64::try_from(value.len()).unwrap_or(u64::MAX));
    message.extend_from_slice(value);
}

fn varint(message: &mut Vec<u8>, mut value: u64) {
    loop {
        let [low, ..] = (value & 0x7f).to_le_bytes();
        value >>= 7;
        if value == 0 {
            message.push(low);
            return;
        }
        message.push(low | 0x80);
    }
}

#[cfg(test)]
mod tests {
    use http::Request;
    use prost::Message;

    use super::*;

    #[derive(Clone, PartialEq, Message)]
    struct Status {
        #[prost(int32, tag = "1")]
        code: i32,
        #[prost(string, tag = "2")]
        message: String,
        #[prost(message, repeated, tag = "3")]
        details: Vec<Any>,
    }

    #[derive(Clone, PartialEq, Message)]
    struct Any {
        #[prost(string, tag = "1")]
        type_url: String,
        #[prost(bytes = "vec", tag = "2")]
        value: Vec<u8>,
    }

    #[derive(Clone, PartialEq, Message)]
    struct RetryInfo {
        #[prost(message, tag = "1")]
        retry_delay: Option<Duration>,
    }

    #[derive(Clone, PartialEq, Message)]
    struct Duration {
        #[prost(int64, tag = "1")]
        seconds: i64,
        #[prost(int32, tag = "2")]
        nanos: i32,
    }

    #[test]
    fn status_is_that_of_an_independent_encoder() {
        let long = "m".repeat(300);
        for (wait, seconds, nanos) in [
            (0, 0, 0),
            (1, 0, 1_000),
            (1_500_000, 1, 500_000_000),
            (366 * 86_400 * 1_000_000, 31_622_400, 0),
            (u64::MAX, 18_446_744_073_709, 551_615_000),
        ] {
            for message in ["", "wait", &long] {
                let retry_info = RetryInfo { retry_delay: Some(Duration { seconds, nanos }) };
                let type_url = RETRY_INFO_URL.to_owned();
                let details = vec![Any { type_url, value: retry_info.encode_to_vec() }];
                let status = Status { code: 8, message: message.to_owned(), details };
                let encoded = encode_status(8, message, Micros::new(wait));
                assert_eq!(Status::decode(&*encoded).unwrap(), status, "{wait} {message}");
            }
        }
    }

    #[test]
    fn grpc_requests_are_recognised_by_their_content_type() {
        for (content_type, expected) in [
            ("application/grpc", true),
            ("application/grpc+proto", true),
            ("application/grpc;charset=utf-8", true),
            ("application/grpc-web+proto", true),
            ("application/grpcx", false),
            ("application/json", false),
            ("text/application/grpc", false),
        ] {
            let request = Request::builder().header(CONTENT_TYPE, content_type).body(()).unwrap();
            let (head, ()) = request.into_parts();
            assert_eq!(super::content_type(&head).is_some(), expected, "{content_type}");
        }
        assert!(content_type(&Request::new(()).into_parts().0).is_none());
    }
}
