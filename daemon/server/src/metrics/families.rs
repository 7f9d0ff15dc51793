//! Every metric there is: its name, what kind it is, its labels, what it tells. The page, the
//! manual, the dashboard and the alerts are held to this table.

/// What a metric is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FamilyKind {
    /// Only ever grows; its name ends in `_total`.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Counts by classes, with a sum.
    Histogram,
    /// Always 1; the labels say it. Its name ends in `_info`.
    Info,
    /// Something that others named, without a kind.
    Unknown,
}

/// A metric with all its series.
#[derive(Debug)]
#[non_exhaustive]
pub struct Family {
    /// Its name, as it is asked for; a histogram's series add `_bucket`, `_sum` and `_count`.
    pub name: &'static str,
    /// What it is.
    pub kind: FamilyKind,
    /// The names of its labels, but for `le`.
    pub labels: &'static [&'static str],
    /// What it tells, in a sentence.
    pub help: &'static str,
}

macro_rules! families {
    ($($word:ident: $kind:ident $name:literal [$($label:literal),*] $help:literal;)*) => {
        $(pub(super) static $word: Family = Family {
            name: $name,
            kind: FamilyKind::$kind,
            labels: &[$($label),*],
            help: $help,
        };)*

        /// Every metric there is, in the order of the page.
        pub static FAMILIES: &[&Family] = &[$(&$word),*];
    };
}

families! {
    DECISIONS: Counter "tollgate_decisions_total" ["policy", "answer", "surface"]
        "Checks decided: allowed, denied, never (the cost is above the capacity), shadow_denied (admitted because the policy only records) or error (no decision was made).";
    DURATION: Histogram "tollgate_decision_duration_seconds" ["surface"]
        "How long requests waited for their decision, all checks of a request together.";
    DEGRADED: Counter "tollgate_degraded_decisions_total" ["policy", "answer"]
        "Checks that the policy decided because the store gave no answer: allowed or denied.";
    NO_RULE: Counter "tollgate_forward_auth_no_rule_total" ["outcome"]
        "Requests of forward-auth that no rule was for: pass or deny.";
    STORE_UP: Gauge "tollgate_store_up" []
        "Whether the store was there at the last look, which is each second; memory always is.";
    STORE_DURATION: Histogram "tollgate_store_duration_seconds" []
        "How long requests waited for the store on Redis, the wait for a place in a batch included.";
    STORE_ERRORS: Counter "tollgate_store_errors_total" ["kind"]
        "Requests that the store on Redis did not answer, by why.";
    STORE_BATCH: Histogram "tollgate_store_batch_requests" []
        "Requests in a call of the store on Redis; each call is a round trip.";
    STORE_RECONNECTS: Counter "tollgate_store_reconnects_total" []
        "Reconnections to the Redis store.";
    STORE_REDIRECTIONS: Counter "tollgate_store_redirections_total" []
        "Calls of the store that were sent elsewhere because a slot or a primary had moved.";
    STORE_UNKNOWN: Counter "tollgate_store_unknown_outcomes_total" []
        "Requests of which it is unknown whether the store charged them.";
    KEYS: Gauge "tollgate_keys" []
        "Keys in memory, in all tables.";
    KEYS_MAX: Gauge "tollgate_keys_max" []
        "The most keys that memory takes, in all tables.";
    KEY_EVICTIONS: Counter "tollgate_key_evictions_total" []
        "Live keys evicted from memory to make room for new ones.";
    KEYS_REFUSED: Counter "tollgate_keys_refused_total" []
        "New keys that found no room in memory; store.table_full says what they are answered.";
    CONNECTIONS: Gauge "tollgate_connections" ["listener"]
        "Connections that are open.";
    CONNECTIONS_MAX: Gauge "tollgate_connections_max" ["listener"]
        "The most connections at a time; more wait to be accepted.";
    CONNECTIONS_ACCEPTED: Counter "tollgate_connections_accepted_total" ["listener"]
        "Connections that were accepted.";
    CONNECTIONS_CUT: Counter "tollgate_connections_cut_total" ["listener", "reason"]
        "Connections that were not ended by their peer: overdue (too slow or too long idle), drained (the time to stop was over), failed (a broken protocol or connection), handshake (TLS was not agreed on) or crowded (it made room for another).";
    REQUESTS: Counter "tollgate_http_requests_total" ["listener", "status"]
        "Requests answered, by the class of their status; without probes and scrapes.";
    AUDIT: Counter "tollgate_audit_total" ["verb"]
        "What operators did; each has a line in the log.";
    RELOADS: Counter "tollgate_reloads_total" ["result"]
        "Configuration reloads, by result; after a failure the previous configuration stays active.";
    RELOAD_GOOD: Gauge "tollgate_config_last_reload_successful" []
        "Whether the configuration that was read last is the one that holds.";
    RELOAD_TIME: Gauge "tollgate_config_last_reload_success_timestamp_seconds" []
        "When the configuration that holds was read.";
    XDS_UPDATES: Counter "tollgate_xds_updates_total" ["result"]
        "Configurations that a control plane sent: success or failure (nothing changed).";
    XDS_CONNECTED: Gauge "tollgate_xds_connected" []
        "Whether there is a connection to the control plane that envoy.xds names.";
    POLICIES: Gauge "tollgate_policies" []
        "Policies in the configuration that holds.";
    DRAINING: Gauge "tollgate_draining" []
        "Whether it was told to stop and is finishing.";
    BUILD: Info "tollgate_build_info" ["version"]
        "The version that runs.";
    CPU: Counter "process_cpu_seconds_total" []
        "Time on the CPU, of user and system.";
    MEMORY: Gauge "process_resident_memory_bytes" []
        "Memory that is resident.";
    VIRTUAL_MEMORY: Gauge "process_virtual_memory_bytes" []
        "Memory that is addressed.";
    OPEN_FILES: Gauge "process_open_fds" []
        "File descriptors that are open.";
    MAX_FILES: Gauge "process_max_fds" []
        "The most file descriptors that may be open.";
    THREADS: Gauge "process_threads" []
        "Threads.";
    START: Gauge "process_start_time_seconds" []
        "When the process started.";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_family_is_named_as_its_kind_asks_and_says_what_it_tells() {
        for (at, family) in FAMILIES.iter().enumerate() {
            let name = family.name;
            let is_plain = |c: char| c.is_ascii_lowercase() || c == '_';
            assert!(name.chars().all(is_plain), "{name}");
            assert_eq!(name.ends_with("_total"), family.kind == FamilyKind::Counter, "{name}");
            assert_eq!(name.ends_with("_info"), family.kind == FamilyKind::Info, "{name}");
            assert!(family.labels.iter().all(|it| it.chars().all(is_plain)), "{name}");
            // Nothing in it that either format would have to escape.
            assert!(!family.help.contains(['\\', '\n', '"']), "{name}");
            assert!(family.help.ends_with('.'), "{name}");
            assert!(!FAMILIES[..at].iter().any(|it| it.name == name), "{name} is there twice");
        }
    }
}
