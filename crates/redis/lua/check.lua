-- Check, acquire and peek. Each operation takes slots: a slot is a check with its key in the form of its
-- policy. An operation returns the verdict only; the caller gets the previous bytes and computes the
-- decisions with the same arithmetic.
-- Rows: verbs/count-denied.rows, verbs/leases.rows, verbs/peek.rows, together/shadow.rows

local function is_blocked(key)
  return key.block and (key.block == 0 or now < key.block - 1)
end

-- Returns whether each limit admits, and whether a denial counts for count-denied: not if the cost
-- exceeds a capacity or if the key is blocked.
local function admits(slot)
  local fits, own = true, true
  for index = 1, slot.policy.count do
    local limit = slot.policy[index]
    if slot.cost > limit.capacity then
      fits, own = false, false
    elseif fits and not algorithm(limit).fits(limit, settle(limit, slot.key[index]), slot.cost) then
      fits = false
    end
  end
  if is_blocked(slot.key) then fits, own = false, false end
  return fits, own
end

local function charge(slot, cost, lease)
  if cost == 0 then return end
  local policy, key = slot.policy, slot.key
  for index = 1, policy.count do
    local limit, state = policy[index], key[index]
    local rule = algorithm(limit)
    local it, own = rule.settle(limit, state), slot.rows[index] or lease
    key[index] = rule.charge(limit, state, it, cost, policy.log_entries, own)
  end
  charge_detached(key, function() return cost end)
  save(slot.place, key)
end

local function charge_denied(slot, cost)
  local policy, key, counted = slot.policy, slot.key, false
  if cost == 0 then return end
  for index = 1, policy.count do
    local limit, state = policy[index], key[index]
    if limit.counts_denied then
      local rule = algorithm(limit)
      local change = rule.charge_denied or rule.charge
      local it = rule.settle(limit, state)
      key[index] = change(limit, state, it, cost, policy.log_entries, slot.rows[index])
      counted = true
    end
  end
  if not counted then return end
  charge_detached(key, function(place, limit)
    return policy[place].counts_denied and limit.counts_denied and cost or 0
  end)
  save(slot.place, key)
end

local function finish(slot, admitted, own, lease)
  if admitted then
    charge(slot, slot.cost, lease)
  elseif own then
    charge_denied(slot, slot.cost)
  end
end

local function lease_cost(slot, id)
  for index = 1, slot.policy.count do
    local limit, state = slot.policy[index], slot.key[index]
    if limit.kind == 7 and state then
      local rule = algorithm(limit)
      local cost = rule.cost_of(state, rule.settle(limit, state), id)
      if cost then return cost end
    end
  end
end

local function is_concurrent(policy)
  for index = 1, policy.count do
    if policy[index].kind == 7 then return true end
  end
end

-- Returns the slots whose key holds the lease already, and whether all that would take one do.
local function find_holders(slots, id)
  local held, all, any = {}, true, false
  for place, slot in ipairs(slots) do
    if slot.cost > 0 and is_concurrent(slot.policy) then
      if lease_cost(slot, id) then
        held[place], any = true, true
      else
        all = false
      end
    end
  end
  return held, all and any
end

-- Operations by name; and changes to reservations, by the index of their keys.
local operations, reserved = {}, {}

function operations.check(slots, lease)
  local held = {}
  if lease then
    local all
    held, all = find_holders(slots, lease)
    if all then return 1 end
  end
  local all_admit, all_own, results = true, true, {}
  for place, slot in ipairs(slots) do
    if not held[place] then
      local fits, own = admits(slot)
      results[place] = {fits, own}
      if not slot.policy.shadow then
        all_admit, all_own = all_admit and fits, all_own and own
      end
    end
  end
  for place, slot in ipairs(slots) do
    if results[place] then
      local fits, own = all_admit, all_own
      if slot.policy.shadow then fits, own = results[place][1], results[place][2] end
      finish(slot, fits, own, lease)
    end
  end
  return all_admit and 1 or 0
end

function operations.peek(slots)
  return 1
end
