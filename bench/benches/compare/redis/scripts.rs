//! The usual scripts, one `EVALSHA` per decision. Each returns whether it admits and what remains.

/// A script, its arguments after the key, and a script that adds `ARGV[1]` entries to a key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Script {
    pub(crate) lua: &'static str,
    pub(crate) arguments: &'static [&'static str],
    pub(crate) fill: &'static str,
}

/// A token bucket in a hash: 1,000 per second, burst 1,000.
pub(crate) const HASH: Script = Script {
    lua: "
local rate, capacity, cost = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local bucket = redis.call('HMGET', KEYS[1], 'tokens', 'updated')
local tokens = tonumber(bucket[1]) or capacity
local updated = tonumber(bucket[2]) or now
tokens = math.min(capacity, tokens + math.max(0, now - updated) * rate / 1000000)
local allowed = 0
if tokens >= cost then
  allowed = 1
  tokens = tokens - cost
end
redis.call('HSET', KEYS[1], 'tokens', tokens, 'updated', now)
redis.call('PEXPIRE', KEYS[1], math.ceil(capacity / rate * 2000))
return {allowed, math.floor(tokens)}",
    arguments: &["1000", "1000", "1"],
    fill: "",
};

/// A fixed window in a counter: 1,000 per second.
pub(crate) const COUNTER: Script = Script {
    lua: "
local count = redis.call('INCR', KEYS[1])
if count == 1 then redis.call('PEXPIRE', KEYS[1], ARGV[1]) end
local limit = tonumber(ARGV[2])
return {count <= limit and 1 or 0, math.max(0, limit - count)}",
    arguments: &["1000", "1000"],
    fill: "",
};

/// A log in a sorted set: 20,000 per hour.
pub(crate) const SORTED_SET: Script = Script {
    lua: "
local window, limit = tonumber(ARGV[1]), tonumber(ARGV[2])
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
redis.call('ZREMRANGEBYSCORE', KEYS[1], 0, now - window * 1000)
local count = redis.call('ZCARD', KEYS[1])
if count >= limit then return {0, 0} end
redis.call('ZADD', KEYS[1], now, now)
redis.call('PEXPIRE', KEYS[1], window)
return {1, limit - count - 1}",
    arguments: &["3600000", "20000"],
    fill: "
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
for entry = tonumber(ARGV[1]), 1, -1 do
  redis.call('ZADD', KEYS[1], now - entry * 1000, now - entry * 1000)
end
redis.call('PEXPIRE', KEYS[1], 3600000)
return {1, 0}",
};

/// A log in a list of the latest times. The list is full and its oldest entry has just left the
/// window of 1 ms, so that each request is admitted in its place.
pub(crate) const fn list(limit: &'static [&'static str]) -> Script {
    Script {
        lua: "
local window, limit = tonumber(ARGV[1]), tonumber(ARGV[2])
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local count = redis.call('LLEN', KEYS[1])
if count >= limit then
  local oldest = tonumber(redis.call('LINDEX', KEYS[1], 0))
  if now - oldest < window * 1000 then return {0, 0} end
end
redis.call('RPUSH', KEYS[1], now)
redis.call('LTRIM', KEYS[1], -limit, -1)
redis.call('PEXPIRE', KEYS[1], math.max(window, 600000))
return {1, math.max(0, limit - count - 1)}",
        arguments: limit,
        fill: "
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
for entry = tonumber(ARGV[1]), 1, -1 do redis.call('RPUSH', KEYS[1], now - entry * 1000) end
redis.call('PEXPIRE', KEYS[1], 3600000)
return {1, 0}",
    }
}
