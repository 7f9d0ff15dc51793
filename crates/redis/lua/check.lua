-- Check, acquire and peek. Each operation takes slots: a slot is a check with its key in the form of its
-- policy. An operation returns the verdict only; the caller gets the previous bytes and computes the
-- decisions with the same arithmetic.
-- Rows: operations/ban.rows, operations/count-denied.rows, operations/leases.rows, operations/peek.rows, together/shadow.rows

local function is_blocked(key)
  return key.block and (key.block == 0 or now < key.block - 1)
end

-- Returns the ban of a slot's key, which has no denials, or its counted denials; nil if it has neither, if
-- its policy bans no keys, or if they are too far ahead to be plausible.
local function ban_of(slot)
  local ban, of_policy = slot.key.ban, slot.policy.ban
  if not ban or not of_policy then return nil end
  local length = ban.denials > 0 and of_policy.within or of_policy.length
  if ban.finish > now + 2 * length + TRUST_AHEAD then return nil end
  return ban
end

-- Returns whether every check of a slot is denied.
local function is_locked_out(slot)
  if is_blocked(slot.key) then return true end
  local ban = ban_of(slot)
  return ban and ban.denials == 0
end

-- Counts a denial by the limits of a slot. The states of the key stay in their form.
local function count_denial(slot)
  local of_policy, open = slot.policy.ban, ban_of(slot)
  local denials = open and open.denials + 1 or 1
  local finish = open and open.finish or min(now + of_policy.within, LAST_TIME)
  if denials >= of_policy.denials then
    denials, finish = 0, min(now + of_policy.length, LAST_TIME)
  end
  local key = slot.is_migrated and slot.key or slot.stored
  key.ban = {finish = finish, denials = denials}
  save(slot.place, key)
end

-- Returns whether every limit admits, and whether count-denied limits count a denial: not if the cost
-- exceeds a capacity or if the key is blocked or banned.
local function admits(slot)
  local fits, countable = true, true
  for index = 1, slot.policy.count do
    local limit = slot.policy[index]
    if slot.cost > limit.capacity then
      fits, countable = false, false
    elseif fits and not algorithm_of(limit).fits(limit, advance(limit, slot.key[index]), slot.cost) then
      fits = false
    end
  end
  local limits_fit = fits
  if is_locked_out(slot) then fits, countable = false, false end
  slot.limits_deny = not limits_fit
  return fits, countable, limits_fit
end

local function charge(slot, cost, lease)
  if cost == 0 then return end
  local policy, key = slot.policy, slot.key
  for index = 1, policy.count do
    local limit, state = policy[index], key[index]
    local algorithm = algorithm_of(limit)
    local usage = algorithm.advance(limit, state)
    key[index] = algorithm.charge(limit, state, usage, cost, policy.log_entries, lease)
  end
  if #key.detached > 0 then charge_detached(key, function() return cost end) end
  save(slot.place, key)
end

local function charge_denied(slot, cost)
  local policy, key, counted = slot.policy, slot.key, false
  if cost == 0 then return end
  for index = 1, policy.count do
    local limit, state = policy[index], key[index]
    if limit.counts_denied then
      local algorithm = algorithm_of(limit)
      local change = algorithm.charge_denied or algorithm.charge
      local usage = algorithm.advance(limit, state)
      key[index] = change(limit, state, usage, cost, policy.log_entries)
      counted = true
    end
  end
  if not counted then return end
  charge_detached(key, function(place, limit)
    return policy[place].counts_denied and limit.counts_denied and cost or 0
  end)
  slot.is_migrated = true
  save(slot.place, key)
end

local function finish(slot, admitted, countable, lease)
  if admitted then
    slot.is_charged = true
    charge(slot, slot.cost, lease)
  elseif countable then
    charge_denied(slot, slot.cost)
    if slot.limits_deny and slot.policy.ban and slot.cost > 0 then count_denial(slot) end
  end
end

local function lease_cost(slot, id)
  for index = 1, slot.policy.count do
    local limit, state = slot.policy[index], slot.key[index]
    if limit.kind == 7 and state then
      local algorithm = algorithm_of(limit)
      local cost = algorithm.cost_of(state, algorithm.advance(limit, state), id)
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

-- Operations by name.
local operations = {}

-- A request of one check, the usual case, without a table for the results.
local function check_one(slot, lease)
  if lease and slot.cost > 0 and is_concurrent(slot.policy) and lease_cost(slot, lease) then return 1 end
  local fits, countable, limits_fit = admits(slot)
  slot.is_charged = limits_fit and slot.cost == 0
  finish(slot, fits, countable, lease)
  return (fits or slot.policy.shadow) and 1 or 0
end

function operations.check(slots, lease)
  if #slots == 1 then return check_one(slots[1], lease) end
  local held = {}
  if lease then
    local all
    held, all = find_holders(slots, lease)
    if all then return 1 end
  end
  local all_admit, all_countable, results = true, true, {}
  for place, slot in ipairs(slots) do
    if not held[place] then
      local fits, countable, limits_fit = admits(slot)
      -- A blocked check of cost 0 charges nothing, either way.
      slot.is_charged = limits_fit and slot.cost == 0
      results[place] = {fits, countable}
      if not slot.policy.shadow then
        all_admit, all_countable = all_admit and fits, all_countable and countable
      end
    end
  end
  for place, slot in ipairs(slots) do
    if results[place] then
      local fits, countable = all_admit, all_countable
      if slot.policy.shadow then fits, countable = results[place][1], results[place][2] end
      finish(slot, fits, countable, lease)
    end
  end
  return all_admit and 1 or 0
end

function operations.peek(slots)
  return 1
end
