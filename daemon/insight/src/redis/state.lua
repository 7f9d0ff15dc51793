#!lua
-- Returns the state of the observer and the totals of each record.
local reply = {}
for index, name in ipairs(KEYS) do
  reply[index] = redis.call('HMGET', name, 'o', 'u', 'c')
end
return reply
