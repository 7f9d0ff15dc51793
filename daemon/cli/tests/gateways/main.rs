//! The configurations of `tollgate init` with real gateways, the daemon and an application.
//!
//! A gateway that is not installed is skipped, and standard error says so.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test")]

#[path = "../common/client.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod client;
mod daemon;
mod denials;
mod hostile;
mod init;
mod keepalive;
#[path = "../common/process.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod process;
mod quota;
mod ratelimit;
mod recipes;
mod rejected;
mod sample;
mod setup;
mod tokens;
mod unavailable;

use tollgate_testkit::GatewayKind;

/// Defines a module with each of these tests for one gateway.
macro_rules! gateway {
    ($name:ident, $kind:ident) => {
        mod $name {
            use super::*;

            gateway! { @ $kind
                denials::sixth_request_is_denied_with_retry_after,
                denials::responses_contain_remaining_requests,
                denials::clients_are_limited_separately,
                denials::every_method_is_forwarded_and_limited,
                denials::statuses_of_the_application_are_unchanged,
                hostile::forged_headers_do_not_bypass_the_limit,
                hostile::forged_headers_charge_the_sender,
                hostile::path_variants_do_not_bypass_the_limit,
                hostile::requests_without_path_or_host_do_not_bypass_the_limit,
                hostile::oversized_requests_do_not_bypass_the_limit,
                rejected::control_bytes_do_not_bypass_the_limit,
                rejected::oversized_heads_do_not_bypass_the_limit,
                rejected::broken_connections_are_no_reason_to_pass,
                rejected::duplicate_headers_have_one_value_or_are_refused,
                unavailable::requests_pass_or_fail_as_documented_while_the_daemon_is_down,
                unavailable::fail_closed_rejects_requests_while_the_daemon_is_down,
                unavailable::hanging_daemon_is_unavailable,
                unavailable::untrusted_gateway_gets_no_decision,
                unavailable::on_store_error_deny_denies_every_request,
                unavailable::on_store_error_allow_admits_every_request,
                keepalive::gateway_reuses_its_connections,
                tokens::gateway_sends_its_own_token,
                tokens::missing_or_unknown_token_rejects_every_request,
                tokens::token_without_scope_or_policy_rejects_every_request,
            }
        }
    };
    (@ $kind:ident $($module:ident::$test:ident,)*) => {$(
        #[test]
        fn $test() {
            if GatewayKind::$kind.is_installed() {
                $module::$test(GatewayKind::$kind);
            }
        }
    )*};
}

gateway!(nginx, Nginx);
gateway!(caddy, Caddy);
gateway!(haproxy, Haproxy);
gateway!(envoy, Envoy);
gateway!(traefik, Traefik);
