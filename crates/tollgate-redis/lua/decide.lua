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

-- Takes what a slot's key was, if it has a long log: its bytes do not tell all.
local function keep_what_was(slot, key, verb, time)
  local was, any = {form = key.form, block = key.block, aside = key.aside}, false
  for index, limit in ipairs(key.form and numbers_of_form(key.form) or {}) do
    local state = key[index]
    was[index] = state
    if state and is_log(limit) and not state.data then
      any = true
      local limits = limits_of(form_of(slot.policy))
      local own = limits[place_of(limits, limits_of(key.form)[index])]
      if verb == REFUND and own then
        was[index] = algorithm(own).excerpt_refund(own, state, slot.cost, time)
      end
    end
  end
  slot.was = any and was
end

-- The bytes of a key with a short log for each long one, such that they answer this verb alike.
local function excerpt(slot)
  local was, limits = slot.was, limits_of(form_of(slot.policy))
  for index, limit in ipairs(limits_of(was.form)) do
    local state, place = was[index], place_of(limits, limit)
    if state and is_log(limit) and not state.data and place then
      local own, is_charged = limits[place], slot.key[place] ~= state
      local most, rule = slot.policy.log_entries, algorithm(own)
      was[index] = rule.excerpt(own, state, slot.cost, most, is_charged)
    end
  end
  return (encode(was))
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
