-- Sliding log, also with a precision, to which the stamps are rounded down. State: base, count and a row
-- of (stamp, sum), oldest first. Sums are running sums, so the usage after any entry is one subtraction.
--
-- The row of a short log is in the bytes of its key: the first entries, whose number is kept, are in data
-- from a position on, and the others in the tail. A new string costs time in proportion to its length, so
-- data is cut only when it is written.
--
-- The row of a long log is in blocks, which are fields of the key: the bytes have the oldest and the newest
-- entry, and the position of the oldest. States are immutable: a change makes new blocks beside the stored
-- ones.
-- Rows: limits/log.rows, limits/sliding-by.rows

-- Returns the long row of a limit of a key. Defined in key.lua.
local row_at

function algorithms.sliding_log()
  -- Returns a short log with these entries.
  local function short(base, data)
    local count = #data / ENTRY_LENGTH
    return {base = base, count = count, data = data, from = 1, kept = count, tail = ''}
  end

  local function kept_bytes(state)
    return state.data:sub(state.from, state.from + state.kept * ENTRY_LENGTH - 1)
  end

  local function entry(state, index)
    if state.data then
      if index <= state.kept then return read(ENTRY, state.data, state.from + (index - 1) * ENTRY_LENGTH) end
      return read(ENTRY, state.tail, (index - state.kept - 1) * ENTRY_LENGTH + 1)
    end
    if index == state.count then return state.newest[1], state.newest[2] end
    if index == 1 then return state.oldest[1], state.oldest[2] end
    local number, within = block_of(state.gone + index - 1)
    return read(ENTRY, state.blocks[number] or stored_block(state.row, number), within * ENTRY_LENGTH + 1)
  end

  local function sum_at(state, index)
    if index < 1 then return state.base end
    local _, sum = entry(state, index)
    return sum
  end

  local function total(state)
    return sum_at(state, state.count)
  end

  local function newest(state)
    return (entry(state, state.count))
  end

  -- Returns the number of leading entries for which is_before holds, by exponential and binary search.
  local function partition(state, is_before)
    local low, high, step = 0, state.count, 1
    while low + step < high and is_before(entry(state, low + step)) do
      low, step = low + step, 2 * step
    end
    high = min(high, low + step)
    while low < high do
      local middle = floor((low + high + 1) / 2)
      if is_before(entry(state, middle)) then low = middle else high = middle - 1 end
    end
    return low
  end

  -- Removes the first entries; base is the running sum before the rest.
  local function without_first(state, count, base)
    if count == 0 and base == state.base then return state end
    local left = {base = base, count = state.count - count}
    if state.data then
      local cut = min(count, state.kept)
      left.data, left.from, left.kept = state.data, state.from + cut * ENTRY_LENGTH, state.kept - cut
      left.tail = count > cut and state.tail:sub((count - cut) * ENTRY_LENGTH + 1) or state.tail
    else
      left.row, left.blocks = state.row, state.blocks
      left.gone, left.newest = state.gone + count, state.newest
      if left.count > 0 then left.oldest = {entry(state, count + 1)} end
    end
    return left
  end

  -- Divides the bytes of the entries from a position on into blocks.
  local function put_blocks(blocks, number, data)
    if #data > 0 and #data <= BLOCK * ENTRY_LENGTH then
      blocks[number] = data
      return blocks
    end
    for at = 1, #data, BLOCK * ENTRY_LENGTH do
      blocks[number] = data:sub(at, at + BLOCK * ENTRY_LENGTH - 1)
      number = number + 1
    end
    return blocks
  end

  -- Replaces the entries from an index on.
  local function with_end(state, from, data)
    local count = from - 1 + #data / ENTRY_LENGTH
    local new = {base = state.base, count = count}
    if state.data then
      new.data, new.from, new.kept = state.data, state.from, min(from - 1, state.kept)
      new.tail = state.tail:sub(1, (from - 1 - new.kept) * ENTRY_LENGTH) .. data
      return new
    end
    if count == 0 then return new end
    new.row, new.gone, new.blocks = state.row, state.gone, {}
    for number, block in pairs(state.blocks) do new.blocks[number] = block end
    new.newest = #data > 0 and {read(ENTRY, data, #data - ENTRY_LENGTH + 1)} or {entry(state, count)}
    new.oldest = from > 1 and state.oldest or {read(ENTRY, data)}
    local number, within = block_of(state.gone + from - 1)
    if within > 0 then
      local block = state.blocks[number] or stored_block(state.row, number)
      if #block > within * ENTRY_LENGTH then block = block:sub(1, within * ENTRY_LENGTH) end
      data = block .. data
    end
    put_blocks(new.blocks, number, data)
    return new
  end

  -- Returns the bytes of the entries from an index on, with sums that are reduced, or raised if by is negative.
  local function lowered(state, from, by)
    local parts = {}
    for index = from, state.count do
      local stamp, sum = entry(state, index)
      parts[#parts + 1] = write(ENTRY, stamp, sum - by)
    end
    return table.concat(parts)
  end

  local function rebased(state)
    local new = with_end(state, 1, lowered(state, 1, state.base))
    new.base = 0
    return new
  end

  -- Removes up to count from an entry, and the entry itself if it is then empty.
  local function take_from(state, index, count)
    local cost = sum_at(state, index) - sum_at(state, index - 1)
    local taken = min(count, cost)
    local bytes = lowered(state, index, taken)
    if taken == cost then bytes = bytes:sub(ENTRY_LENGTH + 1) end
    return with_end(state, index, bytes), taken
  end

  local function grained(limit, time)
    return time - time % limit[2]
  end

  -- Returns what still counts, with room for the sum of a cost.
  local function without_expired(state, usage, cost)
    if not state or usage.first >= state.count then return short(0, '') end
    state = without_first(state, usage.first, sum_at(state, usage.first))
    return total(state) + cost < EXACT and state or rebased(state)
  end

  -- Merges the two oldest entries of an exact log beyond the maximum number: because the sums are running
  -- sums, removing the oldest adds its cost to the next.
  local function bounded(limit, state, max_entries)
    if limit.kind == 3 and state.count > max_entries then return without_first(state, 1, state.base) end
    return state
  end

  -- Adds a cost at the time of the usage.
  local function push(limit, state, usage, cost, max_entries)
    state = without_expired(state, usage, cost)
    local stamp, count = grained(limit, usage.time), state.count
    local sum = (count > 0 and total(state) or 0) + cost
    if count == 0 or newest(state) ~= stamp then count = count + 1 end
    return bounded(limit, with_end(state, count, write(ENTRY, stamp, sum)), max_entries)
  end

  -- Keeps the newest entries up to a maximum sum, and reduces the oldest of them.
  local function keep_newest(state, max_sum)
    local base = max(total(state) - max_sum, state.base)
    local gone = partition(state, function(_, sum) return sum <= base end)
    return without_first(state, gone, base)
  end

  local sliding_log = {}

  -- Whether the last block has the newest entry. A key is read as a whole, so the others are there, too.
  local function has_blocks(state)
    local number, within = block_of(state.gone + state.count - 1)
    local block = state.blocks[number] or stored_block(state.row, number)
    if not block or #block < (within + 1) * ENTRY_LENGTH then return false end
    local stamp, sum = read(ENTRY, block, within * ENTRY_LENGTH + 1)
    return stamp == state.newest[1] and sum == state.newest[2]
  end

  -- A limit of a form has an index in it; a detached limit has none.
  function sliding_log.read(limit, from, at, key_place, form, index)
    local state, finish = {}, nil
    if #from < at + 10 then return false end
    state.base, state.count, at = read('<I7I4', from, at)
    if state.count >= LONG then
      state.count, state.oldest, state.newest = state.count - LONG, {}, {}
      state.gone, state.oldest[1], state.oldest[2], state.newest[1], state.newest[2], finish =
        read('<I7I7I7I7I7', from, at)
      state.row = row_at(key_place, limit, form, index)
      state.blocks = state.row.blocks or {}
      if state.count == 0 or not has_blocks(state) then return false end
      if not state.row.blocks then state.row.first, state.row.last = sliding_log.block_range(state) end
    else
      finish = at + state.count * ENTRY_LENGTH
      if #from < finish - 1 then return false end
      if state.count == 0 then return true, nil, finish end
      state.data, state.from, state.kept, state.tail = from, at, state.count, ''
    end
    local is_valid = newest(state) <= LAST_TIME
      and (limit.kind == 5 or total(state) - state.base <= 2 * limit.capacity)
    return is_valid, state, finish
  end

  function sliding_log.write(state)
    if not state then return write('<I7I4', 0, 0) end
    if state.data then return write('<I7I4', state.base, state.count), kept_bytes(state), state.tail end
    return write('<I7I4I7I7I7I7I7', state.base, state.count + LONG, state.gone, state.oldest[1],
      state.oldest[2], state.newest[1], state.newest[2])
  end

  -- Returns the numbers of the first and the last block of a long row.
  function sliding_log.block_range(state)
    return block_of(state.gone), (block_of(state.gone + state.count - 1))
  end

  -- Returns a long log with the entries of a short one.
  function sliding_log.lengthen(state, row)
    return {
      base = state.base, count = state.count, row = row, gone = 0,
      blocks = put_blocks({}, 0, kept_bytes(state) .. state.tail),
      oldest = {entry(state, 1)}, newest = {entry(state, state.count)},
    }
  end

  -- Returns a short log with the entries of a long one.
  function sliding_log.shorten(state)
    local first, last = sliding_log.block_range(state)
    local blocks, _, within = {}, block_of(state.gone)
    for number = first, last do
      blocks[#blocks + 1] = state.blocks[number] or stored_block(state.row, number)
    end
    local data = table.concat(blocks):sub(within * ENTRY_LENGTH + 1, (within + state.count) * ENTRY_LENGTH)
    return short(state.base, data)
  end

  local function compute_usage(limit, state)
    local last = newest(state)
    if last - now > limit[1] + TRUST_AHEAD then
      return {time = now, first = state.count, used = 0}
    end
    local time, first = max(now, last), 0
    if last + limit[1] <= time then
      first = state.count
    elseif entry(state, 1) + limit[1] <= time then
      first = partition(state, function(stamp) return stamp + limit[1] <= time end)
    end
    return {time = time, first = first, used = total(state) - sum_at(state, first)}
  end

  -- States are immutable and the time is fixed, so the result can be cached.
  function sliding_log.advance(limit, state)
    if not state then return {time = now, first = 0, used = 0} end
    if state.usage_for ~= limit then
      state.usage_for, state.usage = limit, compute_usage(limit, state)
    end
    return state.usage
  end

  function sliding_log.fits(limit, usage, cost)
    return usage.used + cost <= limit.capacity
  end

  function sliding_log.remaining(limit, usage)
    return max(limit.capacity - usage.used, 0)
  end

  function sliding_log.recovers_at(limit, state, usage)
    return usage.used > 0 and newest(state) + limit[1] or 0
  end

  function sliding_log.charge(limit, state, usage, cost, max_entries)
    return push(limit, state, usage, cost, max_entries)
  end

  -- Adds a cost at the stamp of a time. An exact log may have thousands of entries behind that time, so
  -- the stamp is at least that of the newest.
  function sliding_log.backfill(limit, state, usage, cost, max_entries, time)
    local stamp = grained(limit, time < now and time or usage.time)
    if stamp + limit[1] <= usage.time then return state end
    state = without_expired(state, usage, cost)
    if limit.kind == 3 and state.count > 0 then stamp = max(stamp, newest(state)) end
    local index = partition(state, function(other) return other < stamp end) + 1
    local bytes = lowered(state, index, -cost)
    if index > state.count or entry(state, index) ~= stamp then
      bytes = write(ENTRY, stamp, sum_at(state, index - 1) + cost) .. bytes
    end
    return bounded(limit, with_end(state, index, bytes), max_entries)
  end

  local function in_bucket(limit, state, usage)
    if not state or newest(state) ~= grained(limit, usage.time) then return 0 end
    return total(state) - sum_at(state, state.count - 1)
  end

  local function denied_cost(limit, state, usage, cost)
    if limit.kind == 3 then return cost end
    return min(cost, max(2 * limit.capacity - in_bucket(limit, state, usage), 0))
  end

  function sliding_log.charge_denied(limit, state, usage, cost, max_entries)
    cost = denied_cost(limit, state, usage, cost)
    state = push(limit, state, usage, cost, max_entries)
    return limit.kind == 3 and keep_newest(state, limit.capacity) or state
  end

  function sliding_log.max_penalty(limit, usage)
    return max(2 * limit.capacity - usage.used, 0)
  end

  -- Returns the index of the entry of a time, if it is in the window.
  local function index_of(limit, state, usage, time)
    local stamp = grained(limit, time)
    local index = partition(state, function(other) return other <= stamp end)
    return index > usage.first and entry(state, index) == stamp and index or nil
  end

  function sliding_log.refund(limit, state, usage, count, time)
    if time then
      local index = index_of(limit, state, usage, time)
      if index then state = take_from(state, index, count) end
    else
      local back = 0
      while back < count and state.count > usage.first do
        local taken
        state, taken = take_from(state, state.count, count - back)
        back = back + taken
      end
    end
    return state.count > 0 and state or nil
  end

  function sliding_log.migrate(limit, state)
    return keep_newest(state, limit.capacity)
  end

  -- Returns a short log that decides like the long one: it has the entries at the cuts only, which
  -- include the sums of those before.
  local function cut_at(state, cuts)
    table.sort(cuts)
    local parts, last = {}, 0
    for _, cut in ipairs(cuts) do
      if cut > last and cut <= state.count then
        parts[#parts + 1] = write(ENTRY, entry(state, cut))
        last = cut
      end
    end
    return short(state.base, table.concat(parts))
  end

  -- Returns the entry after which at most room is used.
  local function leaves_at(state, room)
    local sum = total(state) - room
    return partition(state, function(_, before) return before < sum end) + 1
  end

  -- An excerpt for a refund, before it is made.
  function sliding_log.excerpt_refund(limit, state, count, time)
    local usage = sliding_log.advance(limit, state)
    local cuts = {usage.first, state.count}
    if time then
      local index = index_of(limit, state, usage, time)
      if index then cuts[3], cuts[4] = index - 1, index end
    elseif usage.used > 0 then
      local index = leaves_at(state, min(count, usage.used))
      cuts[3], cuts[4] = index - 1, index
    end
    return cut_at(state, cuts)
  end

  -- An excerpt for any other operation of this cost; is_charged is true if the log was charged.
  function sliding_log.excerpt(limit, state, cost, max_entries, is_charged)
    local usage = sliding_log.advance(limit, state)
    if limit.kind == 3 and is_charged and usage.first < state.count then
      local count = state.count - usage.first
      if newest(state) ~= grained(limit, usage.time) then count = count + 1 end
      if count > max_entries then
        state = without_first(state, usage.first, sum_at(state, usage.first))
        state = without_first(state, 1, state.base)
        usage = sliding_log.advance(limit, state)
      end
    end
    local cuts = {usage.first, state.count - 1, state.count}
    local denied = denied_cost(limit, state, usage, cost)
    if usage.used + cost + (limit.counts_denied and denied or 0) > limit.capacity then
      for _, room in ipairs({cost, cost + denied, 1, 2}) do
        if room <= limit.capacity then
          cuts[#cuts + 1] = leaves_at(state, limit.capacity - room)
        end
      end
    end
    return cut_at(state, cuts)
  end

  return sliding_log
end
