#!lua
-- Copies the totals of a key into the hash beside its counters, unless the hash has later ones.
--
-- KEYS: the hash. ARGV: the total, the time of the last request in ms, how long the hash is kept in ms.
local last = redis.call('HGET', KEYS[1], 'last-updated')
if last and tonumber(last) > tonumber(ARGV[2]) then
  return 0
end
redis.call('HSET', KEYS[1], 'total', ARGV[1], 'last-updated', ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1
