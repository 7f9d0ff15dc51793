-- Reservations are fields of their key, by id. Each has its cost, its time, the form under which it was
-- made, and the level of each limit just after the charge. An index, in the order in which they were made,
-- is in blocks, which are fields, too; it serves to delete reservations whose time has come.
-- Rows: operations/reserve.rows, operations/cancel.rows, operations/reset.rows

local MAX_RESERVATIONS = 10000
local RESERVATION, INDEX_BLOCK = 'r', 'i'
-- The number of index entries in a block, and their format: time and id.
local INDEX_LENGTH, INDEX_ENTRY, INDEX_WIDTH = 32, '<I7c16', 23

-- The changes of this call to a key's fields: new values, or false.
local function changes_of(slot)
  reserved[slot.place] = reserved[slot.place] or {}
  return reserved[slot.place]
end

local function read_field(slot, name)
  local changed = changes_of(slot)[name]
  if changed ~= nil or not hashes[slot.place] then return changed end
  return call('HGET', KEYS[slot.place], name)
end

-- Returns the reservation with this id, if its time has not come and it has the slot's form.
local function reservation(slot, id)
  local got = slot.key.reserved and read_field(slot, RESERVATION .. id)
  if not got or #got < 16 then return nil end
  local cost, acts_at, length, at = read('<I7I7H', got)
  if acts_at <= now or got:sub(at, at + length - 1) ~= slot.key.form then return nil end
  return got, cost, at + length
end

-- Deletes reservations at the start of the index: those whose time has come, and any beyond the maximum.
local function drop_oldest(slot, index)
  local changes, within = changes_of(slot), index.first % INDEX_LENGTH
  local name = INDEX_BLOCK .. (index.first - within) / INDEX_LENGTH
  local block = read_field(slot, name)
  while block and index.count > 0 and within * INDEX_WIDTH < #block do
    local acts_at, id = read(INDEX_ENTRY, block, within * INDEX_WIDTH + 1)
    if acts_at > now and index.held <= MAX_RESERVATIONS then return end
    -- A reservation that was cancelled may have been made again.
    local got = read_field(slot, RESERVATION .. id)
    if got and select(2, read('<I7I7', got)) == acts_at then
      changes[RESERVATION .. id], index.held = false, index.held - 1
    end
    index.first, index.count, within = index.first + 1, index.count - 1, within + 1
  end
  if within == INDEX_LENGTH then changes[name] = false end
end

local function add_reservation(slot, id, acts_at, data)
  local changes, known = changes_of(slot), slot.key.reserved or {latest = 0, first = 0, count = 0, held = 0}
  local index = {
    latest = max(known.latest, acts_at), first = known.first, count = known.count + 1,
    held = known.held + 1,
  }
  local place = known.first + known.count
  local within = place % INDEX_LENGTH
  local name = INDEX_BLOCK .. (place - within) / INDEX_LENGTH
  local block = within > 0 and read_field(slot, name) or ''
  changes[name] = block .. write(INDEX_ENTRY, acts_at, id)
  changes[RESERVATION .. id] = data
  drop_oldest(slot, index)
  slot.key.reserved = index
  save(slot.place, slot.key)
end

function operations.reserve(slots, id, max_wait, add)
  local slot = slots[1]
  local policy, key, cost = slot.policy, slot.key, slot.cost
  local known = reservation(slot, id)
  if known then
    add('r', known)
    return 1
  end
  local acts_at, is_countable = now, not is_locked_out(slot)
  local admitted = is_countable
  for index = 1, policy.count do
    local limit = policy[index]
    if cost > limit.capacity then
      admitted, is_countable = false, false
    else
      local algorithm = algorithm_of(limit)
      local usage = algorithm.advance(limit, key[index])
      local waits_until = algorithm.acts_at(limit, usage, cost)
      local accepted_at = max(algorithm.reserves_at(limit, usage, cost), waits_until - max_wait)
      if accepted_at > now then admitted = false end
      acts_at = max(acts_at, waits_until)
    end
  end
  if not admitted then
    if is_countable and policy.ban and cost > 0 then count_denial(slot) end
    return policy.shadow and 1 or 0
  end
  local is_reserved = cost > 0 and acts_at > now
  if is_reserved and not key.reserved and not can_change_type(slot.place) then return 't' end
  charge(slot, cost)
  if is_reserved then
    local parts = {write('<I7I7H', cost, acts_at, #key.form), key.form}
    for index = 1, policy.count do parts[index + 2] = algorithm_of(policy[index]).write(key[index]) end
    add_reservation(slot, id, acts_at, table.concat(parts))
  end
  return 1
end

function operations.cancel(slots, id, _, add)
  local slot = slots[1]
  local known, cost, at = reservation(slot, id)
  if not known then return 1 end
  add('r', known)
  change_each(slot, function(limit, state, usage, index)
    local mark = {}
    mark.at, mark.used = read('<I7I7', known, at + (index - 1) * 14)
    return algorithm_of(limit).cancel(limit, state, usage, mark, cost)
  end)
  changes_of(slot)[RESERVATION .. id] = false
  local index = slot.key.reserved
  slot.key.reserved = {
    latest = index.latest, first = index.first, count = index.count, held = index.held - 1,
  }
  save(slot.place, slot.key)
  return 1
end

function operations.reset(slots)
  local slot = slots[1]
  save(slot.place, {form = slot.key.form, block = slot.key.block, detached = {}})
  return 1
end

-- Adds the stored reservations of a key to the reply. The caller knows the changes of this call.
function operations.inspect(slots, _, _, add)
  local slot = slots[1]
  if not slot.key.reserved or not hashes[slot.place] then return 1 end
  local changes, got = changes_of(slot), call('HGETALL', KEYS[slot.place])
  for index = 1, #got, 2 do
    local field = got[index]
    if field:sub(1, 1) == RESERVATION and changes[field] == nil then
      add('r', field:sub(2) .. got[index + 1])
    end
  end
  return 1
end
