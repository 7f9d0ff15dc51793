-- What is done with keys. Each verb takes its slots: a slot is a check with its key in the form of
-- its policy. What a verb answers is only what was decided; the caller, who gets the bytes as they
-- were, finds the words of the answer with the same arithmetic.
-- Rows: verbs/take.rows, verbs/refund.rows, verbs/penalize.rows, verbs/block.rows, verbs/count-denied.rows

local function is_blocked(key)
  return key.block and (key.block == 0 or now < key.block - 1)
end

-- Whether each limit admits, and whether the denial is the limits' own and not that the cost never
-- passes or that the key is blocked, which is what count-denied counts.
local function ask(slot)
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
  charge_aside(key, function() return cost end)
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
  charge_aside(key, function(place, limit)
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

-- Of the slots that would take a lease, those that hold it already; true if all do.
local function held_by(slots, id)
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

local verbs = {}

function verbs.check(slots, lease)
  local held = {}
  if lease then
    local all
    held, all = held_by(slots, lease)
    if all then return 1 end
  end
  local all_admit, all_own, says = true, true, {}
  for place, slot in ipairs(slots) do
    if not held[place] then
      local fits, own = ask(slot)
      says[place] = {fits, own}
      if not slot.policy.shadow then
        all_admit, all_own = all_admit and fits, all_own and own
      end
    end
  end
  for place, slot in ipairs(slots) do
    if says[place] then
      local fits, own = all_admit, all_own
      if slot.policy.shadow then fits, own = says[place][1], says[place][2] end
      finish(slot, fits, own, lease)
    end
  end
  return all_admit and 1 or 0
end

function verbs.peek(slots)
  return 1
end

function verbs.take(slots)
  local slot = slots[1]
  local policy, key, granted = slot.policy, slot.key, slot.cost
  for index = 1, policy.count do
    local limit = policy[index]
    granted = min(granted, algorithm(limit).remaining(limit, settle(limit, key[index])))
  end
  local denied = policy.shadow and 1 or 0
  if is_blocked(key) then return denied end
  if granted > 0 then
    charge(slot, granted)
    return 1
  end
  charge_denied(slot, 1)
  return denied
end

function verbs.refund(slots, time)
  local slot = slots[1]
  local policy, key, changed = slot.policy, slot.key, false
  for index = 1, policy.count do
    local limit, state = policy[index], key[index]
    if state then
      local rule = algorithm(limit)
      key[index] = rule.refund(limit, state, rule.settle(limit, state), slot.cost, time)
      changed = changed or key[index] ~= state
    end
  end
  if changed then save(slot.place, key) end
  return 1
end

function verbs.penalize(slots)
  local slot = slots[1]
  local policy, key, charged, changed = slot.policy, slot.key, {}, false
  for index = 1, policy.count do
    local limit, state = policy[index], key[index]
    local rule = algorithm(limit)
    local it = rule.settle(limit, state)
    local cost = min(slot.cost, rule.debt_room(limit, it))
    charged[index] = cost
    if cost > 0 then
      key[index] = rule.charge(limit, state, it, cost, policy.log_entries, slot.rows[index])
      changed = true
    end
  end
  if not changed then return 1 end
  charge_aside(key, function(place) return charged[place] end)
  save(slot.place, key)
  return 1
end

-- Kept as its end and 1, 0 for ever.
function verbs.block(slots, span)
  local slot = slots[1]
  slot.key.block = span and min(now + span, LAST_TIME) + 1 or 0
  save(slot.place, slot.key)
  return 1
end

function verbs.unblock(slots)
  local slot = slots[1]
  if slot.key.block then
    slot.key.block = nil
    save(slot.place, slot.key)
  end
  return 1
end

local function change_leases(slot, id, verb)
  local key, changed = slot.key, false
  for index = 1, slot.policy.count do
    local limit, state = slot.policy[index], key[index]
    if limit.kind == 7 and state then
      local rule = algorithm(limit)
      key[index] = rule[verb](limit, state, rule.settle(limit, state), id)
      changed = changed or key[index] ~= state
    end
  end
  if changed then save(slot.place, key) end
  return 1
end

function verbs.renew(slots, id)
  return change_leases(slots[1], id, 'renew')
end

function verbs.release(slots, id)
  return change_leases(slots[1], id, 'release')
end
