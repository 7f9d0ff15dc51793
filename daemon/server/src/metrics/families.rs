//! The table of metrics: name, kind, labels and help of each. Tests compare the page, the manual,
//! the dashboard and the alerts with it.

/// The kind of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FamilyKind {
    /// Never decreases; its name ends in `_total`.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Counts by bucket, with a sum.
    Histogram,
    /// Always 1; the labels have the values. Its name ends in `_info`.
    Info,
    /// A counter whose name another project chose, without the suffix that counters need.
    Unknown,
}

/// A metric with all its series.
#[derive(Debug)]
#[non_exhaustive]
pub struct Family {
    /// The name in queries; a histogram's series add `_bucket`, `_sum` and `_count`.
    pub name: &'static str,
    /// The kind.
    pub kind: FamilyKind,
    /// The names of the labels, without `le`.
    pub labels: &'static [&'static str],
    /// The meaning, in a sentence.
    pub help: &'static str,
}

/// Defines a static for each metric, and a list of all of them.
macro_rules! families {
    (
        $(#[$attribute:meta])* $visibility:vis $all:ident;
        $($family:ident: $kind:ident $name:literal [$($label:literal),*] $help:literal;)*
    ) => {
        $(pub(super) static $family: Family = Family {
            name: $name,
            kind: FamilyKind::$kind,
            labels: &[$($label),*],
            help: $help,
        };)*

        $(#[$attribute])*
        $visibility static $all: &[&Family] = &[$(&$family),*];
    };
}
pub(super) use families;

families! {
    /// All metrics, in the order of the page.
    pub FAMILIES;
    DECISIONS: Counter "tollgate_decisions_total" ["policy", "answer", "surface"]
        "Checks by what the client got: allowed, denied, never (the cost exceeds the capacity), banned (the policy bans the key for a time), shadow_denied (admitted because the policy is in shadow mode) or error (no decision was made).";
    DURATION: Histogram "tollgate_decision_duration_seconds" ["surface"]
        "Duration of a request's decision, for all its checks together.";
    DEGRADED: Counter "tollgate_degraded_decisions_total" ["policy", "answer"]
        "Checks that the policy decided because the store did not respond: allowed or denied.";
    NO_RULE: Counter "tollgate_forward_auth_no_rule_total" ["outcome"]
        "Forward auth requests that no rule matched: pass or deny.";
    STORE_UP: Gauge "tollgate_store_up" []
        "Whether the store was reachable at the last probe, which runs each second; always 1 in memory.";
    STORE_DURATION: Histogram "tollgate_store_duration_seconds" []
        "Time that requests waited for the Redis store, including the wait for a batch.";
    STORE_ERRORS: Counter "tollgate_store_errors_total" ["kind"]
        "Requests to the Redis store that failed, by the kind of failure.";
    STORE_BATCH: Histogram "tollgate_store_batch_requests" []
        "Requests per call to the Redis store; each call is a round trip.";
    STORE_RECONNECTS: Counter "tollgate_store_reconnects_total" []
        "Reconnections to the Redis store.";
    STORE_REDIRECTIONS: Counter "tollgate_store_redirections_total" []
        "Calls to the store that were redirected because a slot or a primary had moved.";
    STORE_UNKNOWN: Counter "tollgate_store_unknown_outcomes_total" []
        "Requests for which it is unknown whether the store charged them.";
    STORE_DIALS: Counter "tollgate_store_dials_total" []
        "Attempts to connect to a server of the store.";
    STORE_RECONCILED: Counter "tollgate_store_reconciled_total" []
        "Charges that were taken back because the store answered after the deadline.";
    STORE_OVERSHOOT: Counter "tollgate_store_overshoot_total" []
        "Requests that a policy admitted after the deadline and the store denied later.";
    STORE_MEMBERS: Gauge "tollgate_store_members" []
        "Processes that share the limits while the store is unavailable, with this one; 0 while this process has no share.";
    STORE_PENDING_KEYS: Gauge "tollgate_store_pending_keys" []
        "Keys that this process decides with its share until the store is charged for what it has admitted.";
    STORE_CHARGED_BACK: Counter "tollgate_store_charged_back_total" ["result"]
        "Cost of requests that this process admitted with its shares: charged to the store afterwards, or lost because the store could not be charged.";
    STORE_REMEMBERED: Counter "tollgate_store_remembered_denials_total" []
        "Checks that were denied without the store because it had denied the same key and cost within the last second.";
    LEASED: Counter "tollgate_leased_decisions_total" ["result"]
        "Checks of policies with mode: leased that this process decided from quota that it had charged in advance: allowed, or denied because neither it nor the store had more.";
    LEASE_REQUESTS: Counter "tollgate_lease_requests_total" []
        "Times that this process charged quota in advance.";
    STORE_PASSWORDS: Counter "tollgate_store_password_replacements_total" ["result"]
        "Attempts to replace the password in store.password_file or store.sentinel_password_file: accepted on all open connections, or rejected by a server, which keeps the connections and is tried again.";
    STORE_NODE_UP: Gauge "tollgate_store_node_up" ["address"]
        "Whether a connection to this node of the Redis store is up. A node that left the store has no series.";
    STORE_NODE_CONNECTIONS: Gauge "tollgate_store_node_connections" ["address"]
        "Open connections to the node.";
    STORE_NODE_OUTAGES: Counter "tollgate_store_node_outages_total" ["address"]
        "Times that the last connection to the node was lost, or the first one could not be made.";
    STORE_NODE_BREAKER: Gauge "tollgate_store_node_breaker_state" ["address", "state"]
        "The state of the node's circuit breaker: 1 for the current one of closed, open, half_open and closing, 0 for the others.";
    STORE_NODE_BREAKER_OPENED: Counter "tollgate_store_node_breaker_opened_total" ["address"]
        "Times that the breaker opened because calls to the node failed or were too slow.";
    STORE_NODE_BREAKER_REJECTED: Counter "tollgate_store_node_breaker_rejected_total" ["address"]
        "Requests that were not sent because the breaker was not closed.";
    STORE_NODE_IN_FLIGHT: Gauge "tollgate_store_node_in_flight_requests" ["address"]
        "Requests that were sent to the node and not answered yet.";
    STORE_NODE_QUEUED: Gauge "tollgate_store_node_queued_requests" ["address"]
        "Requests that wait to be sent to the node.";
    STORE_NODE_ROUND_TRIP: Histogram "tollgate_store_node_round_trip_seconds" ["address"]
        "Round trips of calls to the node, without the wait to be sent.";
    STORE_NODE_BATCH: Histogram "tollgate_store_node_batch_requests" ["address"]
        "Requests per call to the node.";
    STORE_NODE_ERRORS: Counter "tollgate_store_node_errors_total" ["address", "kind"]
        "Requests to the node that failed, by the kind of failure.";
    STORE_NODE_LATE: Counter "tollgate_store_node_late_total" ["address"]
        "Calls of a request that the node answered after their deadline.";
    STORE_NODE_REDIRECTIONS: Counter "tollgate_store_node_redirections_total" ["address"]
        "Calls that the node redirected because a slot or a primary had moved.";
    STORE_NODE_DIALS: Counter "tollgate_store_node_dials_total" ["address"]
        "Attempts to connect to the node.";
    STORE_NODE_SCRIPTS: Counter "tollgate_store_node_scripts_total" ["address"]
        "Scripts that the node has executed since its start, for all clients; read every ten seconds.";
    STORE_NODE_SCRIPT_TIME: Counter "tollgate_store_node_script_seconds_total" ["address"]
        "Time that the node has spent in these scripts.";
    KEYS: Gauge "tollgate_keys" []
        "Keys in memory, in all tables.";
    KEYS_MAX: Gauge "tollgate_keys_max" []
        "Maximum number of keys in memory, in all tables.";
    MEMORY_STORE_BYTES: Gauge "tollgate_memory_store_bytes" ["kind"]
        "Bytes of the memory store: keys (with their states), blocks and request_ids.";
    MEMORY_STORE_BYTES_MAX: Gauge "tollgate_memory_store_bytes_max" []
        "Maximum of these bytes together, store.max_bytes.";
    KEY_EVICTIONS: Counter "tollgate_key_evictions_total" []
        "Live keys evicted from memory to make room for new ones.";
    KEYS_REFUSED: Counter "tollgate_keys_refused_total" []
        "New keys for which the memory table had no space; store.table_full decides the response.";
    TRACKED_DROPPED: Counter "tollgate_tracked_dropped_total" ["reason"]
        "Decisions of policies with track that were not recorded: queue_full, long_key (over 256 bytes) or store (not written to Redis in time).";
    TRACKED_FORGOTTEN: Counter "tollgate_tracked_forgotten_total" []
        "Tracked keys that were forgotten because there were more than track.max_keys or track.max_bytes.";
    TRACKED_KEYS: Gauge "tollgate_tracked_keys" []
        "Tracked keys in memory; 0 on Redis.";
    TRACKED_BYTES: Gauge "tollgate_tracked_bytes" []
        "Bytes of their records; 0 on Redis.";
    TRACKED_PENDING: Gauge "tollgate_tracked_pending_keys" []
        "Keys whose decisions wait to be written to Redis.";
    CONNECTIONS: Gauge "tollgate_connections" ["listener"]
        "Open connections.";
    CONNECTIONS_MAX: Gauge "tollgate_connections_max" ["listener"]
        "Maximum number of open connections; more wait to be accepted.";
    CONNECTIONS_ACCEPTED: Counter "tollgate_connections_accepted_total" ["listener"]
        "Accepted connections.";
    CONNECTIONS_CUT: Counter "tollgate_connections_cut_total" ["listener", "reason"]
        "Connections that the client did not close: overdue (too slow or idle for too long), drained (open after the drain timeout), failed (a protocol or connection error), handshake (the TLS handshake failed), crowded (evicted in favour of another connection) or peer (over limits.peer_connections).";
    BUFFERS: Gauge "tollgate_connection_buffer_bytes" []
        "Memory that connections use for long requests and unsent responses.";
    BUFFERS_MAX: Gauge "tollgate_connection_buffer_bytes_max" []
        "Maximum of that memory, limits.buffers.";
    REQUESTS: Counter "tollgate_http_requests_total" ["listener", "status"]
        "Requests by the class of their status, without probes and scrapes.";
    AUDIT: Counter "tollgate_audit_total" ["verb"]
        "Operator requests; each has a line in the audit log.";
    RELOADS: Counter "tollgate_reloads_total" ["result"]
        "Configuration reloads, by result; after a failure the previous configuration stays active.";
    RELOAD_GOOD: Gauge "tollgate_config_last_reload_successful" []
        "Whether the last configuration that was read is the active one.";
    RELOAD_TIME: Gauge "tollgate_config_last_reload_success_timestamp_seconds" []
        "When the active configuration was read.";
    XDS_UPDATES: Counter "tollgate_xds_updates_total" ["result"]
        "Configurations received from the control plane: success or failure (rejected).";
    XDS_CONNECTED: Gauge "tollgate_xds_connected" []
        "Whether the control plane of envoy.xds is connected.";
    QUOTA_STREAMS: Gauge "tollgate_quota_streams" []
        "Open streams of Envoy's rate limit quota service.";
    QUOTA_BUCKETS: Gauge "tollgate_quota_buckets" []
        "Buckets of the open streams.";
    QUOTA_REPORTS: Counter "tollgate_quota_reports_total" []
        "Messages with reports about buckets.";
    QUOTA_RESPONSES: Counter "tollgate_quota_responses_total" []
        "Messages with assignments.";
    QUOTA_SILENT: Counter "tollgate_quota_silent_clients_total" []
        "Clients that sent no report for 15 seconds, and may apply an assignment late.";
    QUOTA_FAILED: Counter "tollgate_quota_failed_assignments_total" ["reason"]
        "Assignments that were not made: store (it is unavailable), late (it took longer than a second) or refused (the limit cannot be divided, or there is none).";
    COMPARED_REQUESTS: Counter "tollgate_compared_requests_total" ["result"]
        "Requests that the service in envoy.compare answered: same or different (from Tollgate's decision), other_failed (the client got the failure of that service, or did not wait) or tollgate_failed (Tollgate made no decision).";
    COMPARED: Counter "tollgate_compared_descriptors_total" ["policy", "result"]
        "Descriptors of these requests by policy or rule: same, only_other_denied or only_tollgate_denied.";
    POLICIES: Gauge "tollgate_policies" []
        "Policies in the active configuration.";
    DRAINING: Gauge "tollgate_draining" []
        "Whether the daemon is draining.";
    BUILD: Info "tollgate_build_info" ["version"]
        "The version of the daemon.";
    CPU: Counter "process_cpu_seconds_total" []
        "User and system CPU time.";
    MEMORY: Gauge "process_resident_memory_bytes" []
        "Resident memory.";
    VIRTUAL_MEMORY: Gauge "process_virtual_memory_bytes" []
        "Virtual memory.";
    OPEN_FILES: Gauge "process_open_fds" []
        "Open file descriptors.";
    MAX_FILES: Gauge "process_max_fds" []
        "Maximum number of open file descriptors.";
    THREADS: Gauge "process_threads" []
        "Threads.";
    START: Gauge "process_start_time_seconds" []
        "When the process started.";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_kind_and_help_is_a_sentence() {
        for (index, family) in FAMILIES.iter().enumerate() {
            let name = family.name;
            let is_plain = |c: char| c.is_ascii_lowercase() || c == '_';
            assert!(name.chars().all(is_plain), "{name}");
            assert_eq!(name.ends_with("_total"), family.kind == FamilyKind::Counter, "{name}");
            assert_eq!(name.ends_with("_info"), family.kind == FamilyKind::Info, "{name}");
            assert!(family.labels.iter().all(|label| label.chars().all(is_plain)), "{name}");
            // Neither format needs to escape any of it.
            assert!(!family.help.contains(['\\', '\n', '"']), "{name}");
            assert!(family.help.ends_with('.'), "{name}");
            assert!(!FAMILIES[..index].iter().any(|other| other.name == name), "{name} twice");
        }
    }
}
