#!lua
-- Returns members of an index after a position, with their ranks.
--
-- KEYS: the index, and the index by time.
-- ARGV: `1` for descending order; the rank and the member after which to begin, with an empty rank for
-- the beginning; the prefix; the most members to return; the most members to visit; the score in the
-- index by time below which a member has expired.
-- Reply: the rank and the member at which the visit ended early, or two empty texts; then members and
-- ranks.
local index, seen = KEYS[1], KEYS[2]
local is_descending = ARGV[1] == '1'
local rank, after, prefix = ARGV[2], ARGV[3], ARGV[4]
local limit, budget, expiry = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])

local function range(first, last)
  if is_descending then
    return redis.call('ZRANGE', index, first, last, 'REV', 'WITHSCORES')
  end
  return redis.call('ZRANGE', index, first, last, 'WITHSCORES')
end

-- By bytes: the operator of Lua compares in the server's locale.
local function is_less(a, b)
  local length = math.min(#a, #b)
  for i = 1, length do
    local x, y = string.byte(a, i), string.byte(b, i)
    if x ~= y then
      return x < y
    end
  end
  return #a < #b
end

local start = 0
if rank ~= '' then
  local before, through
  if is_descending then
    before = redis.call('ZCOUNT', index, '(' .. rank, '+inf')
    through = redis.call('ZCOUNT', index, rank, '+inf')
  else
    before = redis.call('ZCOUNT', index, '-inf', '(' .. rank)
    through = redis.call('ZCOUNT', index, '-inf', rank)
  end
  -- The first of the members with this rank that comes after the position.
  while before < through do
    local middle = math.floor((before + through) / 2)
    local member = range(middle, middle)[1]
    local is_after
    if is_descending then
      is_after = is_less(member, after)
    else
      is_after = is_less(after, member)
    end
    if is_after then
      through = middle
    else
      before = middle + 1
    end
  end
  start = before
end

local reply, found, visited = { '', '' }, 0, 0
while found < limit do
  local chunk = range(start, start + 127)
  if #chunk == 0 then
    return reply
  end
  for i = 1, #chunk, 2 do
    local member, score = chunk[i], string.format('%.0f', tonumber(chunk[i + 1]))
    visited = visited + 1
    if string.sub(member, 1, #prefix) == prefix then
      local time = score
      if seen ~= index then
        time = redis.call('ZSCORE', seen, member) or '0'
      end
      if tonumber(time) >= expiry then
        found = found + 1
        reply[#reply + 1] = member
        reply[#reply + 1] = score
        if found == limit then
          return reply
        end
      end
    end
    if visited >= budget then
      reply[1], reply[2] = score, member
      return reply
    end
  end
  start = start + #chunk / 2
end
return reply
