#!lua
-- Takes, renews and releases the leases of an observer.
--
-- KEYS: a hash with two fields for each server: `h` and its name, the observer and when its lease ends;
-- `u` and its name, until when it was observed. Times are in ms.
-- ARGV: the observer, the length of a lease in ms, how long the hash is kept in ms; then for each server
-- its name and `hold`, `observed` (hold, and notifications arrive) or `release`.
-- Reply: for each server whether the observer has its lease, and the ms since it was last observed, or -1
-- if no server has been observed yet.
local hash, observer, length = KEYS[1], ARGV[1], tonumber(ARGV[2])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local function text(number)
  return string.format('%.0f', number)
end

local current = {}
for i = 4, #ARGV, 2 do
  current[ARGV[i]] = true
end

-- A server that takes over the slots of another one, as after a failover, has been observed as long as the
-- other.
local before = -1
local fields = redis.call('HGETALL', hash)
for i = 1, #fields, 2 do
  if string.sub(fields[i], 1, 1) == 'u' and not current[string.sub(fields[i], 2)] then
    before = math.max(before, tonumber(fields[i + 1]))
  end
end

local reply, observed = {}, 0
for i = 4, #ARGV, 2 do
  local server, wish = ARGV[i], ARGV[i + 1]
  local holder, ends = string.match(redis.call('HGET', hash, 'h' .. server) or '', '^(%S+) (%d+)$')
  local is_own = not holder or holder == observer or tonumber(ends) <= now
  local last = tonumber(redis.call('HGET', hash, 'u' .. server) or before)
  if is_own and wish == 'release' then
    redis.call('HDEL', hash, 'h' .. server)
  elseif is_own then
    redis.call('HSET', hash, 'h' .. server, observer .. ' ' .. text(now + length))
  end
  if is_own and wish == 'observed' then
    redis.call('HSET', hash, 'u' .. server, text(now))
  end
  if last >= now - length then
    observed = observed + 1
  end
  reply[#reply + 1] = is_own and 1 or 0
  reply[#reply + 1] = last < 0 and -1 or math.max(now - last, 0)
end
-- Every current server is observed, so that the others are not needed any more.
if observed * 2 == #reply then
  for i = 1, #fields, 2 do
    if not current[string.sub(fields[i], 2)] then
      redis.call('HDEL', hash, fields[i])
    end
  end
end
redis.call('PEXPIRE', hash, ARGV[3])
return reply
