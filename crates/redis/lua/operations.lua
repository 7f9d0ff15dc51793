-- The operations on one key, except reservations; created on first use.
-- Rows: operations/take.rows, operations/refund.rows, operations/penalize.rows, operations/block.rows
-- Rows: operations/backfill.rows

-- Changes the state of every limit that has one; change returns the new state.
local function change_each(slot, change)
  local key, changed = slot.key, false
  for index = 1, slot.policy.count do
    local limit, state = slot.policy[index], key[index]
    if state then
      key[index] = change(limit, state, advance(limit, state), index)
      changed = changed or key[index] ~= state
    end
  end
  if changed then save(slot.place, key) end
  return 1
end

function operations.take(slots)
  local slot = slots[1]
  local policy, key, granted = slot.policy, slot.key, slot.cost
  for index = 1, policy.count do
    local limit = policy[index]
    granted = min(granted, algorithm_of(limit).remaining(limit, advance(limit, key[index])))
  end
  local denied = policy.shadow and 1 or 0
  if is_locked_out(slot) then return denied end
  if granted > 0 then
    charge(slot, granted)
    return 1
  end
  charge_denied(slot, 1)
  if policy.ban then count_denial(slot) end
  return denied
end

function operations.refund(slots, time)
  local slot = slots[1]
  return change_each(slot, function(limit, state, usage)
    return algorithm_of(limit).refund(limit, state, usage, slot.cost, time)
  end)
end

local function penalize(slot)
  local policy, key, charged, changed = slot.policy, slot.key, {}, false
  for index = 1, policy.count do
    local limit, state = policy[index], key[index]
    local algorithm = algorithm_of(limit)
    local usage = algorithm.advance(limit, state)
    local cost = min(slot.cost, algorithm.max_penalty(limit, usage))
    charged[index] = cost
    if cost > 0 then
      key[index] = algorithm.charge(limit, state, usage, cost, policy.log_entries)
      changed = true
    end
  end
  if not changed then return 1 end
  charge_detached(key, function(place) return charged[place] end)
  save(slot.place, key)
  return 1
end

function operations.penalize(slots)
  return penalize(slots[1])
end

-- Charges the limit at an index, counted from 0, where a time counts; buckets and queues are charged now.
function operations.backfill(slots, time, index)
  local slot, place = slots[1], index + 1
  local policy, key = slot.policy, slot.key
  local limit, state = policy[place], key[place]
  local algorithm = algorithm_of(limit)
  local usage = algorithm.advance(limit, state)
  local cost = min(slot.cost, algorithm.max_penalty(limit, usage))
  if cost == 0 then return 1 end
  local change, charged = algorithm.backfill or algorithm.charge, nil
  key[place], charged = change(limit, state, usage, cost, policy.log_entries, time)
  if key[place] == state then return 1 end
  charge_detached(key, function(other) return other == place and (charged or cost) or 0 end, time)
  save(slot.place, key)
  return 1
end

-- Replaces charges by the actual costs. The cost of a slot is the difference.
function operations.settle(slots)
  for _, slot in ipairs(slots) do
    if slot.cost > 0 and slot.refunds then
      change_each(slot, function(limit, state, usage, index)
        local recovers_at = slot.recovers_at[index] or 0
        return algorithm_of(limit).refund(limit, state, usage, slot.cost, slot.time, recovers_at)
      end)
    elseif slot.cost > 0 then
      penalize(slot)
    end
  end
  return 1
end

-- Stored as the end plus 1; 0 is a block without an end.
function operations.block(slots, span)
  local slot = slots[1]
  slot.key.block = span and min(now + span, LAST_TIME) + 1 or 0
  save(slot.place, slot.key)
  return 1
end

function operations.unblock(slots)
  local slot = slots[1]
  local ban = slot.key.ban
  local is_banned = ban and ban.denials == 0
  if slot.key.block or is_banned then
    slot.key.block = nil
    if is_banned then slot.key.ban = nil end
    save(slot.place, slot.key)
  end
  return 1
end

local function change_leases(slot, id, operation)
  return change_each(slot, function(limit, state, usage)
    if limit.kind ~= 7 then return state end
    return algorithm_of(limit)[operation](limit, state, usage, id)
  end)
end

-- Takes back the charges of admitted checks at a time, and their lease.
function operations.undo(slots, id, time)
  for _, slot in ipairs(slots) do
    change_each(slot, function(limit, state, usage)
      local algorithm = algorithm_of(limit)
      if limit.kind == 7 then return algorithm.release(limit, state, usage, id) end
      return algorithm.refund(limit, state, usage, slot.cost, time)
    end)
  end
  return 1
end

function operations.renew(slots, id)
  return change_leases(slots[1], id, 'renew')
end

function operations.release(slots, id)
  return change_leases(slots[1], id, 'release')
end
