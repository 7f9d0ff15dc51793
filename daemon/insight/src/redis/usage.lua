#!lua
-- Returns the totals of each record.
local reply = {}
for index, name in ipairs(KEYS) do
  reply[index] = redis.call('HMGET', name, 'u', 'c')
end
return reply
