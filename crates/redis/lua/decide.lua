-- The general path: reads a request, finds its slots, and executes it.
-- Rows: together/checks.rows, together/shadow.rows

-- The operation of each number.
local decided_by = {
  [0] = 'check', 'peek', 'take', 'reserve', 'cancel', 'refund', 'penalize', 'reset', 'block',
  'unblock', 'check', 'renew', 'release', 'inspect', 'undo', 'settle', 'backfill',
}
local CHECK, RESERVE, REFUND, BLOCK, UNBLOCK, ACQUIRE = 0, 3, 5, 8, 9, 10
local INSPECT, UNDO_CHECKS, SETTLE, BACKFILL = 13, 14, 15, 16
local MAX_INSPECTED = 1000
local with_id = {[3] = true, [4] = true, [10] = true, [11] = true, [12] = true, [14] = true}

-- Calls visit if a list is wanted and a limit of the slot's policy continues it, with the slot, the limit,
-- its index, and the table and the field of the state. Usage is cached for the limits of the policy.
local function visit_continued(limit, holder, name, slot, previous, is_wanted, visit, a)
  if not is_wanted(limit, holder[name]) then return end
  local form, place = form_of(slot.policy), name
  if holder ~= previous or previous.form ~= form then
    if holder == previous then limit = limits_of(previous.form)[name] end
    place = place_of(limits_of(form), limit)
  end
  if place then visit(slot, slot.policy[place], place, holder, name, a) end
end

local function is_long_log(limit, state)
  return is_log(limit) and not state.data
end

-- Returns the state of a slot's key, which later changes do not affect.
local function snapshot(key)
  local previous = {form = key.form, block = key.block, ban = key.ban, detached = {}}
  for index = 1, key.form and #numbers_of_form(key.form) or 0 do previous[index] = key[index] end
  for place, detached in ipairs(key.detached) do
    previous.detached[place] = {limit = detached.limit, state = detached.state}
  end
  return previous
end

local function has_lease_set(limit, state)
  return limit.kind == 7 and state.epoch
end

local function replace_lease_set(slot, limit, _, holder, name, names)
  slot.has_long_list = true
  holder[name] = algorithm_of(limit).excerpt(limit, holder[name], slot.cost, names.id, names.most)
end

local function find_long_log(slot, limit, _, holder, name)
  slot.has_long_list = true
  if slot.refunds then
    holder[name] = algorithm_of(limit).excerpt_refund(limit, holder[name], slot.cost, slot.time)
  end
end

-- Keeps the previous state of a slot's key if it has a long list, which its bytes do not contain.
local function snapshot_lists(slot, key, operation, id, is_named)
  local previous = snapshot(key)
  if lease_sets[slot.place] then
    local names = {id = id, most = operation == INSPECT and MAX_INSPECTED or nil}
    each_list(previous, visit_continued, slot, previous, has_lease_set, replace_lease_set, names)
  end
  slot.recorded = is_named and snapshot(previous)
  if rows[slot.place] then
    each_list(previous, visit_continued, slot, previous, is_long_log, find_long_log)
  end
  slot.previous = slot.has_long_list and previous
end

local function replace_list(slot, limit, place, holder, name, id)
  local algorithm, state = algorithm_of(limit), holder[name]
  if limit.kind == 7 then
    holder[name] = algorithm.excerpt(limit, state, slot.cost, id)
  elseif slot.refunds then
    holder[name] = algorithm.excerpt_refund(limit, state, slot.cost, slot.time)
  else
    local is_charged = slot.key[place] ~= state
    holder[name] = algorithm.excerpt(limit, state, slot.cost, slot.policy.log_entries, is_charged)
  end
end

-- Returns bytes of the key with a short excerpt of each wanted list that leads to the same decision.
local function excerpt(slot, previous, is_wanted, id)
  each_list(previous, visit_continued, slot, previous, is_wanted, replace_list, id)
  return (encode(previous, true))
end

-- What the record of a request id has: the data of the request, or the previous answer.
local recorded

-- Adds data of the current request to the reply.
local function add(kind, data)
  if kind == 'r' then recorded = data end
  reply[#reply + 1] = request_index
  reply[#reply + 1] = kind .. data
end

local function decide(at)
  local requests, operation, checks = ARGV[2], nil, nil
  operation, checks, at = read('<BB', requests, at)
  local is_named = operation >= 128
  if is_named then operation = operation - 128 end
  local slots = {}
  for place = 1, checks do
    local slot, policy = {}, nil
    policy, slot.place, slot.cost, at = read('<HHI7', requests, at)
    local arg = ARGV[policy + 3]
    slot.policy = parsed[arg] or new_policy(arg)
    slots[place] = slot
  end
  local id, number, index
  if with_id[operation] then id, at = read('<c16', requests, at) end
  if operation == RESERVE or operation == REFUND or operation == BLOCK then
    number, at = read('<I7', requests, at)
  end
  -- 0 is a refund without a time, or a block without an end.
  if operation == REFUND or operation == BLOCK then number = number > 0 and number - 1 or nil end
  if operation == BACKFILL then number, index, at = read('<I7B', requests, at) end
  local name
  if is_named then
    name = {}
    name.place, name.fingerprint, name.horizon, name.role, name.attempt, at =
      read('<Hc16I7BI7', requests, at)
    if operation == CHECK or operation == ACQUIRE or operation == SETTLE then
      name.target, at = read('<c16', requests, at)
    end
    if operation == SETTLE then name.charge, at = read('<H', requests, at) end
  end

  recorded = nil
  if name then
    local known, charged_at
    if operation == SETTLE then
      known, recorded = look_up_charge(name, slots, add)
    else
      known, charged_at = look_up(name, add)
    end
    if known then return known, at end
    number = charged_at or number
  end
  if operation == REFUND or operation == UNDO_CHECKS then
    for _, slot in ipairs(slots) do slot.refunds, slot.time = true, number end
  end
  for _, slot in ipairs(slots) do
    local key = load(slot.place)
    if not key then return 's', at end
    -- Only a key that has been read has long lists.
    if is_named or rows[slot.place] or lease_sets[slot.place] then
      snapshot_lists(slot, key, operation, id, is_named)
    end
    local keeps_form = key.form and (operation == BLOCK or operation == UNBLOCK)
    slot.stored, slot.key = key, keeps_form and key or in_form_of(slot.policy, key)
  end
  local verdict
  if not operations[decided_by[operation]] then create_operations() end
  local decider = operations[decided_by[operation]]
  if id then
    verdict = decider(slots, id, number, add)
  else
    verdict = decider(slots, number, index, add)
  end
  for place, slot in ipairs(slots) do
    if slot.previous then
      add('k', write('<B', place - 1) .. excerpt(slot, slot.previous, is_long_log))
    end
  end
  if name and verdict == 1 and (name.role == WHOLE or name.role == PART or name.role == COMMIT) then
    for _, slot in ipairs(slots) do
      local before = slot.recorded
      slot.recorded = before.form and excerpt(slot, before, is_list, id) or ''
    end
    if operation == CHECK or operation == ACQUIRE then recorded = charges_of(name, slots) end
    remember(name, id or '', slots, recorded)
  end
  return verdict, at
end

-- Begins a call.
local function begin_general()
  hashes, sorted_sets = hashes or {}, sorted_sets or {}
  many_leases, lease_sets = emptied(many_leases), emptied(lease_sets)
  changeable, remembered = emptied(changeable), emptied(remembered)
  if form_count > MAX_PARSED then numbers, known, form_count = {}, {}, 0 end
end

local function write_records()
  for place, record in pairs(remembered) do write_remembered(place, record) end
end

return decide, begin_general, write_records, write_sorted_set
