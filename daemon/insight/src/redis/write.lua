#!lua
-- Adds a batch of records, once: the number of the last batch of a writer is stored first, so that a
-- batch whose reply was lost can be sent again.
--
-- KEYS: the writer, the indexes by time, by requests and by denials, then the record of each key.
-- ARGV: the number of the batch, the prefix of the records' names, how long a record is kept in ms, the
-- maximum number of keys, the number of notes, the number of intervals, their length in s, whether usage
-- is tracked, how long the writer is remembered in ms, whether records have the state of an observer. Then
-- for each record: first and last time, allowed, denied, cost, the number of intervals and of notes; with
-- states the expected and the new state; for each interval its start in s, allowed, denied and cost; the
-- notes in one text, the oldest first, each with its length before it, in two bytes, the higher one first.
-- Reply: the number of evicted keys, or -1 if the batch was executed before. With states a list: this
-- number, then the allowed requests and the last time of each record; in place of the requests -1 if another
-- observer has written the record, and -2 if it was evicted or has expired.
--
-- A record is a hash, with few fields because each takes memory and time. Numbers in a field are separated by
-- colons, and have at most 64 bytes together, because Redis stores a hash with a longer field in more memory:
-- `u`: the first and the last time, the number and the length of intervals, the number of notes
-- `c`: allowed, denied, cost
-- `t` and a number: the start of an interval, allowed, denied and cost
-- `r`: the notes
-- `o`: the state of an observer
local writer, seen, used, denied = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
if tonumber(redis.call('GET', writer) or '0') >= tonumber(ARGV[1]) then
  return -1
end
redis.call('SET', writer, ARGV[1], 'PX', ARGV[9])

local MAX_TOTAL = 9007199254740991
local prefix, keep, max_keys = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local notes, intervals, length = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
local has_usage, has_states = ARGV[8] == '1', ARGV[10] == '1'
local shape = ARGV[6] .. ':' .. ARGV[7]
local position = 11

local function take()
  local value = ARGV[position]
  position = position + 1
  return value
end

local function text(number)
  return string.format('%.0f', number)
end

local function sum(old, new)
  return text(math.min((tonumber(old) or 0) + tonumber(new), MAX_TOTAL))
end

-- Intervals of another configuration are in other places.
local function reshape(name)
  local fields, stale = redis.call('HGETALL', name), {}
  for i = 1, #fields, 2 do
    if string.sub(fields[i], 1, 1) == 't' then
      stale[#stale + 1] = fields[i]
    end
  end
  if #stale > 0 then
    redis.call('HDEL', name, unpack(stale))
  end
end

-- Removes the oldest of a number of notes.
local function newest_notes(list, count)
  local start = 1
  for _ = notes + 1, count do
    local high, low = string.byte(list, start, start + 1)
    start = start + 2 + 256 * high + low
  end
  return string.sub(list, start)
end

-- Whether a record has the state from which the write was computed. It has the new state if the reply to
-- this write was lost.
local totals = {}
local function accepts_write(name, expected, new)
  local stored, times, counts = unpack(redis.call('HMGET', name, 'o', 'u', 'c'))
  if (stored or '') == expected then
    return true
  end
  local last, allowed = string.match(times or '', ':(%d+)'), string.match(counts or '', '^%d+')
  totals[#totals + 1] = stored == new and allowed or last and '-1' or '-2'
  totals[#totals + 1] = last or '0'
  return false
end

local by_time, by_use, by_denials = {}, {}, {}
local newest = 0
local function write(name)
  local member = string.sub(name, #prefix + 1)
  local first, last = take(), take()
  local allowed, refused, cost = take(), take(), take()
  local interval_count, note_count = tonumber(take()), tonumber(take())
  local state
  if has_states then
    local expected = take()
    state = take()
    if not accepts_write(name, expected, state) then
      position = position + 4 * interval_count + 1
      return
    end
  end
  local fields, parts = { 'u', 'c' }, {}
  for i = 1, interval_count do
    local part = { start = take(), allowed = take(), denied = take(), cost = take() }
    part.field = 't' .. text((tonumber(part.start) / length) % intervals)
    parts[i] = part
    fields[#fields + 1] = part.field
  end
  local list, count = take(), note_count
  if note_count > 0 and note_count < notes then
    fields[#fields + 1] = 'r'
  end
  local old = redis.call('HMGET', name, unpack(fields))
  local old_count = 0
  if old[1] then
    local f, l, s, n = string.match(old[1], '^(%d+):(%d+):(%d+:%d+):(%d+)$')
    local a, d, c = string.match(old[2], '^(%d+):(%d+):(%d+)$')
    if s ~= shape then
      reshape(name)
      for i = 3, 2 + interval_count do
        old[i] = false
      end
    end
    if tonumber(f) < tonumber(first) then
      first = f
    end
    if tonumber(l) > tonumber(last) then
      last = l
    end
    allowed, refused, cost, old_count = sum(a, allowed), sum(d, refused), sum(c, cost), tonumber(n)
  end
  if old_count > 0 and #fields > 2 + interval_count then
    count = count + old_count
    list = old[#fields] .. list
  end
  local new = {}
  -- Several intervals of a batch may share a place: the later one comes last.
  local places = {}
  for i = 1, interval_count do
    local part = parts[i]
    local stored = places[part.field] or old[2 + i]
    local start, a, d, c
    if stored then
      start, a, d, c = string.match(stored, '^(%d+):(%d+):(%d+):(%d+)$')
    end
    if start == part.start then
      a, d, c = sum(a, part.allowed), sum(d, part.denied), sum(c, part.cost)
      places[part.field] = part.start .. ':' .. a .. ':' .. d .. ':' .. c
    elseif not start or tonumber(start) < tonumber(part.start) then
      places[part.field] =
        part.start .. ':' .. part.allowed .. ':' .. part.denied .. ':' .. part.cost
    else
      places[part.field] = stored
    end
  end
  for field, value in pairs(places) do
    new[#new + 1] = field
    new[#new + 1] = value
  end
  if count > 0 then
    old_count = math.min(count, notes)
    new[#new + 1] = 'r'
    new[#new + 1] = newest_notes(list, count)
  end
  new[#new + 1] = 'u'
  new[#new + 1] = table.concat({ first, last, shape, old_count }, ':')
  new[#new + 1] = 'c'
  new[#new + 1] = table.concat({ allowed, refused, cost }, ':')
  if state then
    new[#new + 1] = 'o'
    new[#new + 1] = state
    totals[#totals + 1] = allowed
    totals[#totals + 1] = last
  end
  redis.call('HSET', name, unpack(new))
  redis.call('PEXPIREAT', name, text(math.floor(tonumber(last) / 1000) + keep))
  newest = math.max(newest, tonumber(last))
  by_time[#by_time + 1] = last
  by_time[#by_time + 1] = member
  if has_usage then
    by_use[#by_use + 1] = sum(allowed, refused)
    by_use[#by_use + 1] = member
    if refused ~= '0' then
      by_denials[#by_denials + 1] = refused
      by_denials[#by_denials + 1] = member
    end
  end
end

for index = 5, #KEYS do
  write(KEYS[index])
end
if #by_time == 0 then
  return { 0, unpack(totals) }
end

local function remove(members)
  if #members == 0 then
    return
  end
  redis.call('ZREM', seen, unpack(members))
  redis.call('ZREM', used, unpack(members))
  redis.call('ZREM', denied, unpack(members))
  for _, member in ipairs(members) do
    -- Fails only while the slot is being migrated; the record then expires.
    redis.pcall('DEL', prefix .. member)
  end
end

redis.call('ZADD', seen, unpack(by_time))
if #by_use > 0 then
  redis.call('ZADD', used, unpack(by_use))
end
if #by_denials > 0 then
  redis.call('ZADD', denied, unpack(by_denials))
end

local expiry = '(' .. text(newest - keep * 1000)
remove(redis.call('ZRANGEBYSCORE', seen, '-inf', expiry, 'LIMIT', 0, 128))
local excess = math.min(redis.call('ZCARD', seen) - max_keys, 256)
if excess > 0 then
  -- Of the oldest keys, those with the fewest denials.
  local oldest, ranked = redis.call('ZRANGE', seen, 0, excess + 7), {}
  for index, member in ipairs(oldest) do
    local denials = tonumber(redis.call('ZSCORE', denied, member) or '0')
    ranked[index] = { member = member, denials = denials, index = index }
  end
  table.sort(ranked, function(a, b)
    if a.denials ~= b.denials then
      return a.denials < b.denials
    end
    return a.index < b.index
  end)
  local members = {}
  for index = 1, excess do
    members[index] = ranked[index].member
  end
  remove(members)
end
for _, name in ipairs({ seen, used, denied }) do
  redis.call('PEXPIREAT', name, text(math.floor(newest / 1000) + keep))
end
if has_states then
  return { math.max(excess, 0), unpack(totals) }
end
return math.max(excess, 0)
