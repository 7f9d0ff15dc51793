-- Writes keys whose state is not only in their bytes. All of it is in one Redis key, which moves between
-- the nodes of a cluster as a whole.
-- Rows: limits/log.rows, limits/concurrent.rows, operations/reserve.rows

local function call_with(command, name, words)
  for at = 1, #words, 1000 do call(command, name, unpack(words, at, min(at + 999, #words))) end
end

local ANY_LOG = {kind = 3}

-- Writes a key with long logs or reservations: a hash with the bytes in the field '', the blocks of the
-- logs, and the reservations.
local function write_hash(place, to, expires_at)
  local name, set, unused, log = KEYS[place], {'', to}, {}, algorithm_of(ANY_LOG)
  if not hashes[place] then call('DEL', name) end
  -- A log has many blocks, of which a call changes few.
  for _, state in ipairs(hashed_logs[place]) do
    local row, first, last = state.row, log.block_range(state)
    for number, block in pairs(state.blocks) do
      if number >= first and number <= last then
        log.add_block_names(set, row, number, number)
        set[#set + 1] = block
      end
    end
    if row.first then
      log.add_block_names(unused, row, row.first, min(first - 1, row.last))
      log.add_block_names(unused, row, max(last + 1, row.first), row.last)
      row.first = nil
    end
  end
  for _, row in pairs(rows[place] or {}) do
    if row.first then log.add_block_names(unused, row, row.first, row.last) end
  end
  for field, value in pairs(reserved[place] or {}) do
    if value then
      set[#set + 1], set[#set + 2] = field, value
    else
      unused[#unused + 1] = field
    end
  end
  call_with('HSET', name, set)
  call_with('HDEL', name, unused)
  call(injected and 'PEXPIRE' or 'PEXPIREAT', name, expires_at)
end

-- Writes a key with many leases: a sorted set whose first member has the bytes.
local function write_sorted_set(place, to, expires_at)
  local name, changes, state = KEYS[place], lease_sets[place], many_leases[place]
  local added, removed = {'-1', 's' .. to}, {}
  local previous = reply[place + 3]
  if previous and previous ~= to then removed[1] = 's' .. previous end
  if changes.is_new or not sorted_sets[place] then call('DEL', name) end
  local score = algorithms.lease_set().score
  for member, finish in pairs(changes.added) do
    added[#added + 1] = score(state.epoch, member:byte(17), finish)
    added[#added + 1] = member
  end
  for member in pairs(changes.removed) do
    if not changes.added[member] then removed[#removed + 1] = member end
  end
  -- In this order, the key is never empty: it would be deleted.
  call_with('ZADD', name, added)
  call_with('ZREM', name, removed)
  call(injected and 'PEXPIRE' or 'PEXPIREAT', name, expires_at)
end
