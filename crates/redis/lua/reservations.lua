-- Reservations: by id in a hash, and by time in a sorted set. Each has its cost, its time, the form under
-- which it was made, and the level of each limit just after the charge.
-- Rows: operations/reserve.rows, operations/cancel.rows, operations/reset.rows

local MAX_RESERVATIONS = 10000

local function names_of(slot)
  return KEYS[slot.related], KEYS[slot.related + 1]
end

-- The changes of this call to reservations: for each key, the bytes by id, or false if cancelled.
local function changes_of(slot)
  reserved[slot.related] = reserved[slot.related] or {}
  return reserved[slot.related]
end

-- Returns the reservation with this id, if its time has not come and it has the slot's form.
local function reservation(slot, id)
  local got = changes_of(slot)[id]
  if got == nil and not changes_of(slot).all then
    -- A key of another type is replaced by the next reservation.
    got = read_command('HGET', names_of(slot), id)
  end
  if not got or #got < 16 then return nil end
  local cost, acts_at, length, at = read('<I7I7H', got)
  if acts_at <= now or got:sub(at, at + length - 1) ~= slot.key.form then return nil end
  return got, cost, at + length
end

function operations.reserve(slots, id, max_wait, add)
  local slot = slots[1]
  local policy, key, cost = slot.policy, slot.key, slot.cost
  local known = reservation(slot, id)
  if known then
    add('r', known)
    return 1
  end
  local acts_at, admitted = now, not is_blocked(key)
  for index = 1, policy.count do
    local limit = policy[index]
    if cost > limit.capacity then
      admitted = false
    else
      local algorithm = algorithm_of(limit)
      local usage = algorithm.advance(limit, key[index])
      local waits_until = algorithm.acts_at(limit, usage, cost)
      local accepted_at = max(algorithm.reserves_at(limit, usage, cost), waits_until - max_wait)
      if accepted_at > now then admitted = false end
      acts_at = max(acts_at, waits_until)
    end
  end
  if not admitted then return policy.shadow and 1 or 0 end
  charge(slot, cost)
  if cost > 0 and acts_at > now then
    local parts = {write('<I7I7H', cost, acts_at, #key.form), key.form}
    for index = 1, policy.count do parts[index + 2] = algorithm_of(policy[index]).write(key[index]) end
    changes_of(slot)[id] = table.concat(parts)
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
  changes_of(slot)[id] = false
  return 1
end

function operations.reset(slots)
  local slot = slots[1]
  save(slot.place, {form = slot.key.form, block = slot.key.block, detached = {}})
  if slot.related > 0 then reserved[slot.related] = {all = true} end
  return 1
end

-- Adds every reservation of a key to the reply.
function operations.inspect(slots, _, _, add)
  if slots[1].related == 0 then return 1 end
  local got = read_command('HGETALL', (names_of(slots[1]))) or {}
  for index = 1, #got, 2 do add('r', got[index] .. got[index + 1]) end
  return 1
end

-- Deletes a key unless it has this type.
local function ensure_type(name, kind)
  local found = call('TYPE', name).ok
  if found ~= kind and found ~= 'none' then
    corrupt = corrupt + 1
    call('DEL', name)
  end
end

function operations.write_reservations(own, changes)
  local by_id, by_time = KEYS[own], KEYS[own + 1]
  if changes.all then call('DEL', by_id, by_time) end
  changes.all = nil
  ensure_type(by_id, 'hash')
  ensure_type(by_time, 'zset')
  for id, change in pairs(changes) do
    if change then
      local _, acts_at = read('<I7I7', change)
      call('HSET', by_id, id, change)
      call('ZADD', by_time, string.format('%d', acts_at), id)
    else
      call('HDEL', by_id, id)
      call('ZREM', by_time, id)
    end
  end
  local acted = call('ZRANGEBYSCORE', by_time, '-inf', string.format('%d', now), 'LIMIT', 0, 1000)
  local above = call('ZCARD', by_time) - #acted - MAX_RESERVATIONS
  if above > 0 then acted = call('ZRANGE', by_time, 0, #acted + above - 1) end
  for _, id in ipairs(acted) do
    call('ZREM', by_time, id)
    call('HDEL', by_id, id)
  end
  local last = call('ZRANGE', by_time, -1, -1, 'WITHSCORES')[2]
  if last then
    local command = injected and 'PEXPIRE' or 'PEXPIREAT'
    call(command, by_id, expiry(tonumber(last)))
    call(command, by_time, expiry(tonumber(last)))
  end
end
