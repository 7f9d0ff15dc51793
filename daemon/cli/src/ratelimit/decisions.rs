//! Decisions and responses.

use tollgate_daemon::{CompatHeaders, CompatHealth, Config, NearLimit};

use super::environment::Environment;

/// Sets how requests are decided, and how responses and health are reported.
pub(super) fn read(environment: &Environment, config: &mut Config) {
    let envoy = &mut config.envoy;
    envoy.shadow = environment.bool("SHADOW_MODE");
    envoy.dynamic_metadata = environment.bool("RESPONSE_DYNAMIC_METADATA");
    envoy.reference_metrics = true;
    envoy.compat.quota_mode = environment.bool("QUOTA_MODE");
    envoy.compat.near_limit = near_limit(environment);
    envoy.compat.headers = headers(environment);
    let mut health = CompatHealth::default();
    health.starts_without_limits = environment.bool("FORCE_START_WITHOUT_INITIAL_CONFIG");
    health.needs_domains = environment.bool("HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED");
    health.needs_store = environment.bool("REDIS_HEALTH_CHECK_ACTIVE_CONNECTION");
    envoy.compat.health = Some(health);
}

/// A float, so that rounding equals envoyproxy/ratelimit's.
fn near_limit(environment: &Environment) -> NearLimit {
    const NAME: &str = "NEAR_LIMIT_RATIO";
    if environment.millionths(NAME) > 1_000_000 {
        environment.reject(NAME, "write a share from 0 to 1, such as 0.8");
    }
    let ratio = environment.get(NAME).and_then(|text| text.parse().ok());
    ratio.map_or_else(NearLimit::default, NearLimit::from_ratio)
}

fn headers(environment: &Environment) -> Option<CompatHeaders> {
    let headers = CompatHeaders {
        limit: header(environment, "LIMIT_LIMIT_HEADER"),
        remaining: header(environment, "LIMIT_REMAINING_HEADER"),
        reset: header(environment, "LIMIT_RESET_HEADER"),
    };
    environment.bool("LIMIT_RESPONSE_HEADERS_ENABLED").then_some(headers)
}

/// The name of a response header.
fn header(environment: &Environment, name: &'static str) -> String {
    let header = environment.text(name);
    let is_token_byte =
        |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if header.is_empty() || !header.bytes().all(is_token_byte) {
        environment.reject(name, "write the name of a header, such as RateLimit-Limit");
    }
    header
}

#[cfg(test)]
mod tests {
    use super::super::environment::tests::environment;
    use super::*;

    #[test]
    fn defaults_equal_the_original() {
        let mut config = Config::default();
        let environment = environment("");
        read(&environment, &mut config);
        assert!(environment.errors().is_empty());
        let reference = &config.envoy.compat;
        assert_eq!(reference.near_limit, NearLimit::default());
        assert!(reference.headers.is_none() && !reference.quota_mode);
        assert_eq!(reference.health, Some(CompatHealth::default()));
        assert!(config.envoy.reference_metrics && !config.envoy.shadow);
    }

    #[test]
    fn variables_set_the_configuration() {
        let mut config = Config::default();
        let environment = environment(
            "SHADOW_MODE=1 QUOTA_MODE=t RESPONSE_DYNAMIC_METADATA=true \
             LIMIT_RESPONSE_HEADERS_ENABLED=true LIMIT_RESET_HEADER=x-reset NEAR_LIMIT_RATIO=.75 \
             HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED=true",
        );
        read(&environment, &mut config);
        assert!(environment.errors().is_empty());
        let reference = &config.envoy.compat;
        assert!(config.envoy.shadow && config.envoy.dynamic_metadata && reference.quota_mode);
        assert_eq!(reference.near_limit, NearLimit::from_ratio(0.75));
        let health = reference.health.as_ref().unwrap();
        assert!(health.needs_domains && !health.needs_store && !health.starts_without_limits);
        let names = reference.headers.as_ref().unwrap();
        let names = [&*names.limit, &*names.remaining, &*names.reset];
        assert_eq!(names, ["RateLimit-Limit", "RateLimit-Remaining", "x-reset"]);
    }

    #[test]
    fn invalid_values_are_errors() {
        for (lines, message) in [
            ("NEAR_LIMIT_RATIO=1.1", "NEAR_LIMIT_RATIO is \"1.1\"; write a share from 0 to 1"),
            ("LIMIT_LIMIT_HEADER=a:b", "LIMIT_LIMIT_HEADER is \"a:b\"; write the name"),
            ("SHADOW_MODE=yes", "SHADOW_MODE is \"yes\"; write true or false"),
        ] {
            let environment = environment(lines);
            read(&environment, &mut Config::default());
            assert!(environment.errors()[0].starts_with(message), "{lines}");
        }
    }
}
