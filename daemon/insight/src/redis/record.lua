#!lua
-- Returns a record.
return redis.call('HGETALL', KEYS[1])
