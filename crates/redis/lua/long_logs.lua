-- Long logs. The entries are in blocks, which are fields of the key; its bytes have the oldest and the newest
-- entry, and the position of the oldest.
-- Rows: limits/log.rows

local ENTRY, ENTRY_LENGTH = '<I7I7', 14
-- The number of entries in a block.
local BLOCK = 32

-- Returns the block of the entry at a position, and the index of the entry in the block.
local function block_of(place)
  local within = place % BLOCK
  return (place - within) / BLOCK, within
end

-- %d costs less than the conversion of a number by a concatenation.
local function block_name(row, number)
  return row.name .. format_text('%d', number)
end

-- Returns the row of a key with this name: the blocks that were read, as they were before the call, and the
-- changed blocks, which are nil before the first change.
local function row_of(place, name)
  local of_key = rows[place]
  if not of_key then
    of_key = {}
    rows[place] = of_key
  end
  local row = of_key[name]
  if not row then
    row = {place = place, name = name, stored = {}}
    of_key[name] = row
  end
  return row
end

-- Returns a block of a row as it was before the call; false if there is none.
local function stored_block(row, number)
  local block = row.stored[number]
  if block == nil then
    block = read_command('HGET', KEYS[row.place], block_name(row, number))
    row.stored[number] = block
  end
  return block
end

local function block_at(row, number)
  return row.blocks and row.blocks[number] or stored_block(row, number)
end

local function add_block_names(names, row, first, last)
  for number = first, last do names[#names + 1] = block_name(row, number) end
end

local function call_with(command, name, words)
  for at = 1, #words, 1000 do call(command, name, unpack(words, at, min(at + 999, #words))) end
end

-- Writes a hash if only the last block of its log changed, which is usual; otherwise returns false.
local function write_last_block(place, to, states)
  local state, name = states[1], KEYS[place]
  if states[2] or not state or not hashes[place] or reserved[place] then return false end
  -- The log of another limit may have become short.
  if next(rows[place], next(rows[place])) then return false end
  local row, last = state.row, block_of(state.gone + state.count - 1)
  local number, block = next(state.blocks)
  if number ~= last or next(state.blocks, number) or row.last ~= last then return false end
  if row.first ~= block_of(state.gone) then return false end
  call('HSET', name, '', to, block_name(row, number), block)
  return true
end

-- Writes the fields of a hash: the bytes in the field '', the blocks of the logs, and the reservations.
local function write_fields(place, to, states)
  local name, set, unused = KEYS[place], {'', to}, {}
  if not hashes[place] then call('DEL', name) end
  -- A log has many blocks, of which a call changes few.
  for _, state in ipairs(states) do
    local row, first, last = state.row, block_of(state.gone), block_of(state.gone + state.count - 1)
    for number, block in pairs(state.blocks) do
      if number >= first and number <= last then
        set[#set + 1], set[#set + 2] = block_name(row, number), block
      end
    end
    if row.first then
      if row.first < first then add_block_names(unused, row, row.first, min(first - 1, row.last)) end
      if row.last > last then add_block_names(unused, row, max(last + 1, row.first), row.last) end
      row.first = nil
    end
  end
  if rows[place] then
    for _, row in pairs(rows[place]) do
      if row.first then add_block_names(unused, row, row.first, row.last) end
    end
  end
  if reserved[place] then
    for field, value in pairs(reserved[place]) do
      if value then
        set[#set + 1], set[#set + 2] = field, value
      else
        unused[#unused + 1] = field
      end
    end
  end
  call_with('HSET', name, set)
  call_with('HDEL', name, unused)
end

-- Writes a key with long logs or reservations, as a hash. All of it is in one key, which moves between the nodes
-- of a cluster as a whole.
local function write_hash(place, to, expires_at)
  local states = hashed_logs[place]
  if not write_last_block(place, to, states) then write_fields(place, to, states) end
  call(injected and 'PEXPIRE' or 'PEXPIREAT', KEYS[place], expires_at)
end
