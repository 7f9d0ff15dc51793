-- The fast path of one limit with a log, or with leases in the bytes of its key. It makes the same changes as
-- algorithms/sliding_log.lua and algorithms/concurrency.lua, without tables of the entries.
-- Rows: limits/log.rows, limits/sliding-by.rows, limits/concurrent.rows, operations/leases.rows

local LEASE, LEASE_LENGTH = '<c16I2I7', 25
-- The longest lease, and the most that are held.
local MAX_WINDOW, MAX_LEASES = 31622400000000, 10000
-- Beyond this many expired entries, the binary search of the general path is faster.
local MAX_EXPIRED = 8

-- Returns whether the general path must check a log with these numbers.
local function is_special(policy, base, count, newest, sum, cost)
  if newest > now or sum + cost >= EXACT then return true end
  if policy[1].kind == 5 then return false end
  return sum - base > 2 * policy[1].capacity or count > policy.log_entries
end

-- Returns whether a log with a new entry is too long. Then its two oldest entries become one: because the sums
-- are running sums, removing the oldest adds its cost to the next.
local function is_full(policy, count)
  return policy[1].kind == 3 and count >= policy.log_entries
end

local function entry_at(row, place)
  local number, within = block_of(place)
  local block = block_at(row, number)
  if block and #block > within * ENTRY_LENGTH then return read(ENTRY, block, within * ENTRY_LENGTH + 1) end
end

-- Checks a key with a log in blocks, and adds an excerpt to the reply.
local function check_long_log(policy, key, cost)
  local limit, format = policy[1], policy.long_format
  local stamp, expired = now - now % limit[2], now - limit[1]
  local head, base, count, gone, oldest, oldest_sum, newest, sum = read(format, bytes[key])
  count = count - LONG
  if head ~= policy.head or newest <= expired then return nil end
  if is_special(policy, base, count, newest, sum, cost) then return nil end
  local row = row_of(key, policy.row_name)
  local last_block, within = block_of(gone + count - 1)
  local block = block_at(row, last_block)
  -- Without the newest entry, other blocks may be missing, too.
  if not block or #block ~= (within + 1) * ENTRY_LENGTH then return nil end
  local last, last_sum = read(ENTRY, block, within * ENTRY_LENGTH + 1)
  if last ~= newest or last_sum ~= sum then return nil end

  local first = gone
  while oldest and oldest <= expired and first < gone + MAX_EXPIRED do
    base, first = oldest_sum, first + 1
    oldest, oldest_sum = entry_at(row, first)
  end
  if not oldest or oldest <= expired then return nil end
  count = count - (first - gone)
  if newest ~= stamp and is_full(policy, count) then
    first, count = first + 1, count - 1
    oldest, oldest_sum = entry_at(row, first)
    if not oldest then return nil end
  end
  -- The excerpt of a denial has more entries.
  if sum - base + cost > limit.capacity then return nil end
  reply[#reply + 1] = request_index
  reply[#reply + 1] = 'k\0' .. write(policy.format, head, base, 1) .. write(ENTRY, newest, sum)

  local entry, number = write(ENTRY, stamp, sum + cost), last_block
  if newest == stamp then
    block = block:sub(1, -ENTRY_LENGTH - 1) .. entry
  else
    count = count + 1
    if within == BLOCK - 1 then number, block = number + 1, entry else block = block .. entry end
  end
  if count == 1 then oldest, oldest_sum = stamp, sum + cost end
  if not row.blocks then row.blocks, row.first, row.last = {}, block_of(gone), last_block end
  row.blocks[number] = block
  hashed_logs[key] = {{row = row, gone = first, count = count, blocks = row.blocks}}
  bytes[key] = write(format, head, base, count + LONG, first, oldest, oldest_sum, stamp, sum + cost)
  recoveries[key] = stamp + limit[1]
  return 1
end

-- Checks a key with a log. Returns 1 if admitted, 0 if denied, nil if the general path must decide.
function check_log(policy, key, cost)
  local limit, from, format = policy[1], bytes[key], policy.format
  local stamp, expired = now - now % limit[2], now - limit[1]
  local base, count, at, newest, sum, finish = 0, 0, 1, -1, 0, 0
  if from then
    local head
    finish = #from
    if hashes and hashes[key] and finish == policy.long_length then
      return check_long_log(policy, key, cost)
    end
    if finish < policy.length + ENTRY_LENGTH then return nil end
    head, base, count, at = read(format, from)
    if head ~= policy.head or finish ~= policy.length + count * ENTRY_LENGTH then return nil end
    newest, sum = read(ENTRY, from, finish - ENTRY_LENGTH + 1)
    if count >= short_log or is_special(policy, base, count, newest, sum, cost) then return nil end
    if newest <= expired then
      base, count, at, sum = 0, 0, finish + 1, 0
    else
      local last = at + MAX_EXPIRED * ENTRY_LENGTH
      local oldest, oldest_sum = read(ENTRY, from, at)
      while oldest <= expired do
        if at == last then return nil end
        base, count, at = oldest_sum, count - 1, at + ENTRY_LENGTH
        oldest, oldest_sum = read(ENTRY, from, at)
      end
    end
  end
  if sum - base + cost > limit.capacity then return 0 end
  if newest == stamp then
    finish = finish - ENTRY_LENGTH
  elseif is_full(policy, count) then
    at = at + ENTRY_LENGTH
  else
    count = count + 1
  end
  local kept = from and from:sub(at, finish) or ''
  bytes[key] = write(format, policy.head, base, count) .. kept .. write(ENTRY, stamp, sum + cost)
  recoveries[key] = stamp + limit[1]
  return 1
end

-- Returns the time, the sum, the number and the position of the leases of a key, and when the last one expires;
-- nil if the general path must decide.
local function read_leases(policy, from)
  if #from < policy.length + LEASE_LENGTH then return nil end
  local head, time, sum, count, at = read(policy.format, from)
  if head ~= policy.head or #from ~= policy.length + count * LEASE_LENGTH then return nil end
  local last = read('<I7', from, #from - 6)
  if time > now or last > time + MAX_WINDOW or sum > MAX_LEASES then return nil end
  return time, sum, count, at, last
end

function acquire(policy, key, cost, id)
  local limit, from = policy[1], bytes[key]
  if cost > limit.capacity then return nil end
  local used, count, at, finish = 0, 0, 1, now + limit[1]
  if from then
    local time, last
    time, used, count, at, last = read_leases(policy, from)
    -- The leases are in the order of expiry.
    if not time or last > finish or count >= short_leases or from:find(id, at, true) then return nil end
    while count > 0 do
      local its_cost, ends_at = read('<I2I7', from, at + 16)
      if ends_at > now then break end
      used, count, at = used - its_cost, count - 1, at + LEASE_LENGTH
    end
  end
  if used + cost > limit.capacity then return 0 end
  local kept = from and from:sub(at) or ''
  bytes[key] = write(policy.format, policy.head, now, used + cost, count + 1) .. kept
    .. write(LEASE, id, cost, finish)
  recoveries[key] = finish
  return 1
end

function release(policy, key, id)
  local from = bytes[key]
  if not from then return 1 end
  local time, sum, count, at, last = read_leases(policy, from)
  if not time or count > short_leases then return nil end
  local place = from:find(id, at, true)
  if not place then return 1 end
  if (place - at) % LEASE_LENGTH ~= 0 then return nil end
  local cost, ends_at, next_at = read('<I2I7', from, place + 16)
  if ends_at <= now then return nil end
  if count == 1 then
    bytes[key], recoveries[key] = false, 0
    return 1
  end
  if next_at > #from then last = read('<I7', from, place - 7) end
  bytes[key] = write(policy.format, policy.head, time, sum - cost, count - 1)
    .. from:sub(at, place - 1) .. from:sub(next_at)
  recoveries[key] = last
  return 1
end
