//! The recipes of `tollgate init`, run: a real client, a real gateway, the daemon and an application.
//!
//! A gateway that is not installed is skipped, and standard error says so.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test")]

mod away;
mod client;
mod daemon;
mod denials;
mod documents;
mod hostile;
mod init;
mod keepalive;
mod ratelimit;
mod relay;
mod stage;
mod tokens;

use tollgate_testkit::GatewayKind;

/// Each of these, for one gateway, as a test of its own.
macro_rules! gateway {
    ($name:ident, $kind:ident) => {
        mod $name {
            use super::*;

            gateway! { @ $kind
                denials::come_at_the_exact_request,
                denials::say_what_is_left,
                denials::count_each_client_alone,
                denials::reach_every_method,
                denials::leave_the_applications_own_statuses,
                hostile::headers_do_not_free_a_client,
                hostile::headers_are_charged_to_who_sent_them,
                hostile::paths_do_not_free_a_client,
                hostile::missing_parts_do_not_free_a_client,
                hostile::floods_do_not_free_a_client,
                away::daemon_open,
                away::daemon_closed,
                away::daemon_hangs,
                away::daemon_cannot_decide,
                away::store_denies,
                away::store_allows,
                tokens::tokens_are_the_gateways_own,
                tokens::tokens_are_needed,
                tokens::tokens_say_what_a_gateway_may_ask,
            }
        }
    };
    (@ $kind:ident $($room:ident::$test:ident,)*) => {$(
        #[test]
        fn $test() {
            if GatewayKind::$kind.is_installed() {
                $room::$test(GatewayKind::$kind);
            }
        }
    )*};
}

gateway!(nginx, Nginx);
gateway!(caddy, Caddy);
gateway!(haproxy, Haproxy);
gateway!(envoy, Envoy);
