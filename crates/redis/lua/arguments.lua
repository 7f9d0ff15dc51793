-- The arguments of a call: the time, the requests, the policies, and the bytes of the keys.
--
-- The server keeps the functions and tables that are created here from call to call, until it forgets the
-- library. Each call sets the variables of a call first.
--
-- KEYS: the keys of the checks, then the records of request ids.
-- ARGV: 1 the time in µs, or '' for the server's; 2 the requests; 3 the number of keys of checks, or ''
-- for all; then the policies. src/encode.rs packs the requests, src/encoding.rs the policies.
-- Rows: together/limits.rows

local read, write, byte, concat = struct.unpack, struct.pack, string.byte, table.concat
local unpack, tonumber, next = unpack, tonumber, next
local floor, ceil, max, min = math.floor, math.ceil, math.max, math.min
local format_text, call = string.format, redis.call

-- A state is ignored if it is ahead of now by more than its time to recover plus 10 s.
local TRUST_AHEAD = 10000000
-- The maximum time.
local LAST_TIME = 8500000000000000
-- Added to the count of a log, or the bits of leases, that are not in the bytes of the key.
local LONG = 2147483648
-- Integers below 2^53 are exact in a double.
local EXACT = 9007199254740992
-- The number of policies, and of texts, that are kept for later calls.
local MAX_PARSED = 1000

-- The variables of a call. The time; whether a test passes it; the maximum number of log entries in the
-- bytes of a key, which a test that passes the time may append, and of leases.
local KEYS, ARGV, now, injected, short_log, short_leases
-- The number of keys of checks. The current bytes of each; false if it does not exist or has another type.
local checked, bytes
-- By key: whether it is a hash or a sorted set of ours; whether it has another type. If this call writes
-- it as a hash or as a sorted set: its long logs, or its many leases. Its rows of blocks by name, and the
-- changes to the fields of its reservations.
local hashes, sorted_sets, foreign, hashed_logs, many_leases, rows, reserved
-- The reply: the time, the verdict of each request, the number of corrupt keys, the previous bytes of
-- each key, false for none; then additional data of requests. Numbers become RESP integers, which costs
-- less than text.
local reply, verdicts, request_index, corrupt
-- When the state of each changed key recovers, in µs.
local recoveries
-- The option of SET for an expiry, and its limits.
local expires, origin, earliest, latest
-- By argument: the known policies, and their number.
local parsed, parsed_count = {}, 0
-- By time: the known texts of expiries, and their number.
local expiry_texts, expiry_text_count = {}, 0
-- The fast path: the check of a policy with one limit, with several, or with a log; the operations on leases;
-- by kind, the charge of a limit, and the numbers of its state before a list.
local check_one, check_limits, check_log, acquire, release
local charges = {}
local state_formats = {[3] = 'I7I4', [4] = 'I7I7I7', [5] = 'I7I4', [7] = 'I7I4I4'}

-- Sets the operations that the fast path decides.
local function set_fast_path(policy)
  local kind = policy[1].kind
  if kind == 7 then
    policy.has_leases = true
  elseif kind == 3 or kind == 5 then
    local precision, window = policy[1][2], policy[1][3]
    policy.check = check_log
    policy.long_format = policy.format .. 'I7I7I7I7I7'
    policy.long_length = struct.size(policy.long_format)
    policy.row_name = format_text('%d %d %d 0 ', kind, window, kind == 5 and precision / 1000 or 0)
  else
    policy.check = policy.count == 1 and check_one or check_limits
  end
end

local function parse_policy(arg)
  local fast_path, flags, count, log_entries, head_length, at = read('<BBBI7H', arg)
  local policy = {fast_path = fast_path, shadow = flags % 2 == 1, count = count}
  policy.log_entries = log_entries
  policy.head = arg:sub(at, at + head_length - 1)
  at = at + head_length
  local format = '<c' .. head_length
  for index = 1, count do
    local kind, denied, capacity, a, b, c, d, e, next_at = read('<BBI7I7I7I7I7I7', arg, at)
    local limit = {kind = kind, counts_denied = denied == 1, capacity = capacity, a, b, c, d, e}
    limit.charge, limit.numbers = charges[kind], kind == 4 and 3 or 2
    policy[index] = limit
    at = next_at
    format = format .. (state_formats[kind] or 'I7I7')
  end
  policy.format, policy.length = format, struct.size(format)
  if fast_path > 0 then set_fast_path(policy) end
  if flags >= 2 then
    policy.ban = {}
    policy.ban.denials, policy.ban.within, policy.ban.length = read('<I7I7I7', arg, at)
  end
  return policy
end

-- The policy of an argument that was not parsed before: its limits, and the head, which is the prefix of
-- the bytes of every key that has state of these limits only.
local function new_policy(arg)
  local policy = parse_policy(arg)
  parsed[arg], parsed_count = policy, parsed_count + 1
  return policy
end

-- Runs a command that reads a key; returns nil if the key has another type. Keeps any other error,
-- because pcall may return its text only.
local command_error
local function read_command(...)
  local got = redis.pcall(...)
  if type(got) ~= 'table' or not got.err then return got end
  if not got.err:find('WRONGTYPE', 1, true) then
    command_error = got
    error(got)
  end
  return nil
end

-- Reads the bytes of a key that MGET did not return. A key with reservations or a long log is a hash: the
-- field '' has its bytes. A key with many leases is a sorted set: the first member has its bytes.
local function read_other_type(place)
  local found = read_command('HGET', KEYS[place], '')
  if found == false then return end
  if found then
    hashes = hashes or {}
    hashes[place] = true
  else
    local members = read_command('ZRANGE', KEYS[place], 0, 0)
    found = members and members[1]:sub(2)
    if found then
      sorted_sets = sorted_sets or {}
      sorted_sets[place] = true
    else
      foreign = foreign or {}
      foreign[place] = true
    end
  end
  bytes[place], reply[place + 3] = found or false, found or false
end

-- Returns whether any of the keys that MGET did not return exists.
local function exist()
  local missing = {}
  for place = 1, checked do
    if not bytes[place] then missing[#missing + 1] = KEYS[place] end
  end
  return call('EXISTS', unpack(missing)) > 0
end

-- A call has a bounded cost (src/node/queue.rs), so it has fewer keys than unpack can return.
local function read_keys()
  bytes = checked > 0 and call('MGET', unpack(KEYS, 1, checked)) or {}
  reply = {now, '', 0, unpack(bytes, 1, checked)}
  local missing = 0
  for place = 1, checked do
    if not bytes[place] then missing = missing + 1 end
  end
  if missing == 1 or (missing > 1 and exist()) then
    for place = 1, checked do
      if not bytes[place] then read_other_type(place) end
    end
  end
end

-- Returns a table without entries, which is usually that of the last call.
local function emptied(used)
  if used and next(used) == nil then return used end
  return {}
end

local function begin(keys, arguments)
  KEYS, ARGV, command_error = keys, arguments, nil
  injected, short_log, short_leases = ARGV[1] ~= '', 100, 64
  if injected then
    local time, short = ARGV[1]:match('^(%d+) ?(%d*)$')
    now = tonumber(time)
    if short ~= '' then short_log, short_leases = tonumber(short), short / 4 end
  else
    local time = call('TIME')
    now = time[1] * 1000000 + time[2]
  end
  if parsed_count > MAX_PARSED then parsed, parsed_count = {}, 0 end
  if expiry_text_count > MAX_PARSED then expiry_texts, expiry_text_count = {}, 0 end

  checked = ARGV[3] == '' and #KEYS or tonumber(ARGV[3])
  verdicts, request_index, corrupt, recoveries = verdicts or {}, 0, 0, emptied(recoveries)
  hashes, sorted_sets, foreign = nil, nil, nil
  rows, reserved, hashed_logs = emptied(rows), emptied(reserved), emptied(hashed_logs)
  read_keys()

  expires = injected and 'PX' or 'PXAT'
  origin = injected and now / 1000 or 0
  earliest = now / 1000 - origin + (injected and 3601000 or 2000)
  latest = now / 1000 - origin + 315360000000
end

-- The expiry of a key whose state recovers at this time, as an argument of SET: one to two seconds later,
-- or from now, at most ten years from now. If a test passes the time: an hour or more by the server's
-- clock. Whole seconds, because many keys have the same, and the conversion to text is expensive.
local function expiry(recovers_at)
  local at = recovers_at / 1000 - origin + 2000
  if at < earliest then at = earliest elseif at > latest then at = latest end
  at = at - at % 1000
  local text = expiry_texts[at]
  if not text then
    text = format_text('%d', at)
    expiry_texts[at], expiry_text_count = text, expiry_text_count + 1
  end
  return text
end
