-- What the call brings: the time, the requests, the policies, and the bytes of the keys.
--
-- KEYS: those of the checks, then those that belong to them.
-- ARGV: 1 the time in µs, or '' for the server's own; 2 the requests; 3 how many keys are those of
-- checks; then the policies. All is packed: requests as src/ask.rs writes them, and policies as
-- tollgate-core/src/codec/script.rs does.
-- Rows: together/limits.rows

local read, write = struct.unpack, struct.pack
local floor, ceil, max, min = math.floor, math.ceil, math.max, math.min
local call = redis.call

-- State further ahead of now than its own time to recover plus 10 s is not believed.
local TRUST_AHEAD = 10000000
-- The last moment that is told apart.
local LAST_TIME = 8500000000000000
-- Integers below this are exact in a double.
local EXACT = 9007199254740992

-- A test that brings the time may bring after it how many entries a log has at most in its key.
local now, injected, short_log = nil, ARGV[1] ~= '', 256
if injected then
  local time, short = ARGV[1]:match('^(%d+) ?(%d*)$')
  now, short_log = tonumber(time), tonumber(short) or short_log
else
  local time = call('TIME')
  now = time[1] * 1000000 + time[2]
end

local policies = {}

-- The policy at a place: its limits, and the head, which is how the bytes of a key begin that
-- holds state of these limits and nothing else.
local function policy_at(place)
  local arg = ARGV[place + 3]
  local plain, shadow, count, log_entries, head_length, at = read('<BBBI7H', arg)
  local policy = {plain = plain, shadow = shadow == 1, count = count}
  policy.log_entries = log_entries
  policy.head = arg:sub(at, at + head_length - 1)
  at = at + head_length
  local format, fields = '<', 0
  for index = 1, count do
    local kind, denied, capacity, a, b, c, d, e, next_at = read('<BBI7I7I7I7I7I7', arg, at)
    local limit = {kind = kind, counts_denied = denied == 1, capacity = capacity, a, b, c, d, e}
    policy[index] = limit
    at = next_at
    if kind == 4 then
      format, fields = format .. 'I7I7I7', fields + 3
    else
      format, fields = format .. 'I7I7', fields + 2
    end
  end
  policy.format, policy.fields = format, fields
  policies[place] = policy
  return policy
end

-- What a command says of a key; none where that is of a foreign type.
local function ask_for(...)
  local got = redis.pcall(...)
  if type(got) ~= 'table' or not got.err then return got end
  if not got.err:find('WRONGTYPE', 1, true) then error(got) end
  return nil
end

-- The bytes of each key of a check as they are by now; false for none. A foreign type reads as none.
local checked = tonumber(ARGV[3])
local bytes = {}
for first = 1, checked, 1000 do
  local got = call('MGET', unpack(KEYS, first, min(first + 999, checked)))
  for place = 1, #got do bytes[first + place - 1] = got[place] end
end

-- The answer: the time, what became of each request, how many keys held what no charge can have made,
-- the bytes of each key as they were; then what single requests add.
local verdicts, asked, junk = {}, 0, 0
local reply = {string.format('%d', now), '', '0'}
for place = 1, checked do reply[place + 3] = bytes[place] or '' end

-- When the state of each key that has changed recovers, in µs.
local recoveries = {}

-- When a key is dropped whose state recovers at this time, as SET has it: a second later, at most
-- ten years from now; while a test brings the time, in an hour or more by the server's own.
local expires = injected and 'PX' or 'PXAT'
local origin = injected and now / 1000 or 0
local earliest = now / 1000 - origin + (injected and 3600000 or 1000)
local latest = now / 1000 - origin + 315360000000
local function expiry(recovers_at)
  local at = recovers_at / 1000 - origin + 1001
  if at < earliest then at = earliest elseif at > latest then at = latest end
  return string.format('%d', at)
end
