-- One request of any verb: reads it, finds its slots, and decides it.
-- Rows: together/checks.rows, together/shadow.rows

-- What follows the checks of each verb, and who decides it.
local decided_by = {
  [0] = 'check', 'peek', 'take', 'reserve', 'cancel', 'refund', 'penalize', 'reset', 'block',
  'unblock', 'check', 'renew', 'release', 'inspect',
}
local RESERVE, REFUND, BLOCK, UNBLOCK = 3, 5, 8, 9
local with_id = {[3] = true, [4] = true, [10] = true, [11] = true, [12] = true}

-- Where the long rows of a slot's logs are: by the limit's place, and by what makes it the same.
local function find_rows(slot)
  local policy, form, row = slot.policy, form_of(slot.policy), slot.own
  slot.rows = {}
  for index = 1, row > 0 and policy.count or 0 do
    if is_log(policy[index]) then
      slot.rows[index] = row
      row = row + 1
    end
  end
  return function(of, limit)
    if of == form then return slot.rows[limit] end
    if of then limit = limits_of(of)[limit] end
    return slot.rows[place_of(limits_of(form), limit)]
  end
end

-- Calls visit with the limits of a key that are logs, each with the table and the name under which
-- its state is found there, and the caller's own form of it.
local function each_log(slot, was, visit)
  local function look(limit, holder, name)
    if not holder[name] or not is_log(limit) or holder[name].data then return end
    local limits = limits_of(form_of(slot.policy))
    local place = place_of(limits, limit)
    if place then visit(limits[place], holder, name, place) end
  end
  for index, limit in ipairs(was.form and numbers_of_form(was.form) or {}) do
    if is_log(limit) then look(limits_of(was.form)[index], was, index) end
  end
  for _, it in ipairs(was.aside) do look(it.limit, it, 'state') end
end

-- Takes what a slot's key was, if it has a long log: its bytes do not tell all.
local function keep_what_was(slot, key, verb, time)
  local was, any = {form = key.form, block = key.block, aside = {}}, false
  for index = 1, key.form and #numbers_of_form(key.form) or 0 do was[index] = key[index] end
  for place, it in ipairs(key.aside) do was.aside[place] = {limit = it.limit, state = it.state} end
  each_log(slot, was, function(own, holder, name)
    any = true
    if verb == REFUND then
      holder[name] = algorithm(own).excerpt_refund(own, holder[name], slot.cost, time)
    end
  end)
  slot.was = any and was
end

-- The bytes of a key with a short log for each long one, such that they answer this verb alike.
local function excerpt(slot)
  local most = slot.policy.log_entries
  each_log(slot, slot.was, function(own, holder, name, place)
    local state = holder[name]
    local is_charged = slot.key[place] ~= state
    holder[name] = algorithm(own).excerpt(own, state, slot.cost, most, is_charged)
  end)
  return (encode(slot.was))
end

local function decide(index, at)
  local requests, verb, checks = ARGV[2], nil, nil
  verb, checks, at = read('<BB', requests, at)
  local is_named = verb >= 128
  if is_named then verb = verb - 128 end
  local slots = {}
  for place = 1, checks do
    local slot, policy = {}, nil
    policy, slot.place, slot.own, slot.cost, at = read('<HHHI7', requests, at)
    slot.policy = policies[policy] or policy_at(policy)
    slots[place] = slot
  end
  local id, number
  if with_id[verb] then id, at = read('<c16', requests, at) end
  if verb == RESERVE or verb == REFUND or verb == BLOCK then
    number, at = read('<I7', requests, at)
  end
  -- No time to refund at, and a block for ever, are 0.
  if verb == REFUND or verb == BLOCK then number = number > 0 and number - 1 or nil end
  local named, fingerprint, horizon
  if is_named then named, fingerprint, horizon, at = read('<Hc16I7', requests, at) end

  local reservation
  local function add(what, it)
    if what == 'r' then reservation = it end
    reply[#reply + 1] = string.format('%d', index)
    reply[#reply + 1] = what .. it
  end
  if named then
    local known = look_up(named, fingerprint, add)
    if known then return known, at end
  end
  for _, slot in ipairs(slots) do
    slot.before = bytes[slot.place] or ''
    local key = load(slot.place, find_rows(slot))
    if not key then return 's', at end
    keep_what_was(slot, key, verb, number)
    local keeps_form = key.form and (verb == BLOCK or verb == UNBLOCK)
    slot.key = keeps_form and key or in_form_of(slot.policy, key)
  end
  local name, verdict = decided_by[verb], nil
  if not verbs[name] then make_verbs() end
  local decider = verbs[name]
  if id then
    verdict = decider(slots, id, number, add)
  else
    verdict = decider(slots, number, nil, add)
  end
  for place, slot in ipairs(slots) do
    if slot.was then
      slot.excerpt = excerpt(slot)
      add('k', write('<B', place - 1) .. slot.excerpt)
    end
  end
  if named and verdict == 1 then
    remember(named, fingerprint, horizon, id or '', slots, reservation)
  end
  return verdict, at
end

-- Writes what belongs to keys: reservations, long rows, and requests that carry an id.
local function finish()
  for own, changes in pairs(reserved) do verbs.write_reservations(own, changes) end
  for name, tail in pairs(long_rows) do
    if tail.from and tail.recovers_at then algorithm({kind = 3}).finish(name, tail) end
  end
  for place, it in pairs(remembered) do write_remembered(place, it) end
end

return decide, finish
