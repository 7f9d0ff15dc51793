-- Writes a key as a hash: its bytes in the field '', the blocks of its long logs, and its reservations.
-- Such a key moves between the nodes of a cluster as a whole.
-- Rows: limits/log.rows, operations/reserve.rows

local function call_with(command, name, words)
  for at = 1, #words, 1000 do call(command, name, unpack(words, at, min(at + 999, #words))) end
end

local function write_hash(place, to, expires_at)
  local name, ranges, set, unused = KEYS[place], {}, {'', to}, {}
  if not hashes[place] then call('DEL', name) end
  for _, state in ipairs(hashed_logs[place]) do
    local row, first, last = state.row, algorithm_of({kind = 3}).block_range(state)
    ranges[row] = {first, last}
    for number = first, last do
      if state.blocks[number] then
        set[#set + 1], set[#set + 2] = row.name .. number, state.blocks[number]
      end
    end
  end
  for _, row in pairs(rows[place] or {}) do
    local range = ranges[row] or {1, 0}
    for number = row.first or 1, row.last or 0 do
      if number < range[1] or number > range[2] then unused[#unused + 1] = row.name .. number end
    end
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
