#!lua
-- Returns the state of the observer in each record, the allowed requests and the last time.
local reply = {}
for index, name in ipairs(KEYS) do
  reply[index] = redis.call('HMGET', name, 'o', 'a', 'l')
end
return reply
