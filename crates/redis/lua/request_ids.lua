-- Idempotency: a repeat of a request id within the horizon gets the first answer again. A record has
-- its end, the fingerprint of the request, the attempt that wrote it, whether the request was executed,
-- and then what the answer is computed from.
--
-- A request with keys in several partitions makes an attempt: it claims the id in the partition of its
-- first check, charges the others, and then the first, which decides. Only the attempt that claimed
-- last may do so. It takes over what earlier attempts charged, and takes back only what no later one
-- took over.
--
-- A charge is settled once: the settlement has a record of its own, which ends with that of the charge.
-- Rows: together/request-ids.rows, operations/settle.rows

-- The records that this call writes; false for one that it deletes.
local remembered
-- The roles of a named request.
local WHOLE, CLAIM, PART, COMMIT, UNDO, RECALL, LOOK_UP = 0, 1, 2, 3, 4, 5, 6
local HEADER = '<I7c16I7B'
-- The checks of a request that cannot be settled.
local NO_TARGET = string.rep('\0', 16)

local function record_of(name)
  local text = remembered[name.place]
  if text == nil then text = read_command('GET', KEYS[name.place]) end
  if not text or #text < 31 then return nil end
  local record, ends_at, executed = {text = text}, nil, nil
  ends_at, record.fingerprint, record.attempt, executed, record.at = read(HEADER, text)
  if now >= ends_at then return nil end
  record.ends_at, record.executed = ends_at, executed == 1
  record.is_same = record.fingerprint == name.fingerprint
  return record
end

local function header(ends_at, fingerprint, attempt, executed)
  return write(HEADER, ends_at, fingerprint, attempt, executed)
end

-- Returns a verdict if the request is not to be executed: 'r' for a repeat, whose record is added; 'u'
-- if the id was used with other arguments; 'x' if another attempt has taken over; '0' if there is
-- nothing to undo, or if a request that only looks up its id is not a repeat. Returns nil and the time
-- of the charge for one that is to be undone.
local function look_up(name, add)
  local role, record = name.role, record_of(name)
  if role == UNDO then
    local is_own = record and record.executed and record.is_same and record.attempt == name.attempt
    if not is_own then return '0' end
    remembered[name.place] = false
    add('c', record.text:sub(record.at, record.at + 6))
    return nil, (read('<I7', record.text, record.at))
  end
  if record and record.executed then
    if not record.is_same then return 'u' end
    if role == PART then
      if record.attempt > name.attempt then return 'x' end
      local taken_over = header(record.ends_at, record.fingerprint, name.attempt, 1)
      remembered[name.place] = taken_over .. record.text:sub(record.at)
    end
    add('i', record.text:sub(record.at))
    return 'r'
  end
  if role == CLAIM then
    local attempt = max(now, record and record.attempt + 1 or 0)
    remembered[name.place] = header(min(now + name.horizon, LAST_TIME), name.fingerprint, attempt, 0)
    add('c', write('<I7', attempt))
  elseif role == COMMIT then
    local is_own = record and record.is_same and record.attempt == name.attempt
    if not is_own then return 'x' end
  elseif role == LOOK_UP then
    return '0'
  end
end

-- Reads what the slots of a settlement were charged; returns nil if that is unknown.
local function charge_of(name, slots)
  local record = record_of({place = name.charge})
  local is_known = record and record.executed and record.text:sub(-#name.target) == name.target
  if not is_known then return nil end
  local text, at, length, drawn = record.text, record.at, nil, nil
  local charge = {fingerprint = record.fingerprint, ends_at = record.ends_at}
  charge.time, drawn, at = read('<I7I4', text, at)
  at = at + drawn
  local forms = {}
  for place = 1, #slots do
    length, at = read('<I4', text, at)
    forms[place], at = text:sub(at, at + length - 1), at + length
    length, at = read('<I4', text, at)
    at = at + length
  end
  for place, slot in ipairs(slots) do
    local own, is_charged = {recovers_at = {}}, nil
    is_charged, own.cost, at = read('<BI7', text, at)
    own.is_charged = is_charged == 1
    local is_same = forms[place] == form_of(slot.policy)
    for index = 1, #numbers_of_form(forms[place]) do
      local recovers_at
      recovers_at, at = read('<I7', text, at)
      if is_same then own.recovers_at[index] = recovers_at end
    end
    charge[place] = own
  end
  return charge
end

-- Returns a verdict if a settlement is not to be executed: 'r' for a repeat, whose record is added; 'd'
-- if the charge was settled with other costs; 'n' if it is unknown; 'l' if the cost of a lease would
-- change; '0' for a look-up, to which the fingerprint of the charge is added. Otherwise the cost of each
-- slot becomes the difference to its charge, and the charges are added and returned.
local function look_up_charge(name, slots, add)
  local charge = charge_of(name, slots)
  if not charge then return 'n' end
  local settled = record_of(name)
  -- The id may have been used for an earlier charge before the clock stepped back.
  if settled and settled.ends_at ~= charge.ends_at then settled = nil end
  if settled and not settled.is_same then return 'd' end
  if settled and name.role ~= LOOK_UP then
    add('i', settled.text:sub(settled.at))
    return 'r'
  end
  for place, slot in ipairs(slots) do
    if slot.cost ~= charge[place].cost and is_concurrent(slot.policy) then return 'l' end
  end
  if name.role == LOOK_UP then
    add('f', charge.fingerprint)
    return '0'
  end
  local parts = {write('<I7', charge.time)}
  for place, slot in ipairs(slots) do
    local own = charge[place]
    parts[#parts + 1] = write('<BI7B', own.is_charged and 1 or 0, own.cost, #own.recovers_at)
    for _, recovers_at in ipairs(own.recovers_at) do parts[#parts + 1] = write('<I7', recovers_at) end
    local difference = own.is_charged and slot.cost - own.cost or 0
    slot.refunds, slot.cost = difference <= 0, math.abs(difference)
    slot.time, slot.recovers_at = charge.time, own.recovers_at
  end
  name.ends_at = charge.ends_at
  local charges = table.concat(parts)
  add('h', charges)
  return nil, charges
end

-- Returns what a settlement needs to know of an admitted check: for each slot whether it was charged, its
-- cost, and when its buckets and queues recover; then the checks without their costs.
local function charges_of(name, slots)
  if name.target == NO_TARGET then return '' end
  local parts = {}
  for _, slot in ipairs(slots) do
    parts[#parts + 1] = write('<BI7', slot.is_charged and 1 or 0, slot.cost)
    for index = 1, slot.policy.count do
      local limit = slot.policy[index]
      local drains = limit.kind == 0 or limit.kind == 6
      parts[#parts + 1] = write('<I7', drains and recovers_at(limit, slot.key[index]) or 0)
    end
  end
  parts[#parts + 1] = name.target
  return table.concat(parts)
end

-- Records the state of an admitted request: the time, the random id, and for each slot the form of its
-- policy and bytes of its key that lead to the same answer; then other data of the operation.
local function remember(name, drawn, slots, data)
  local ends_at = name.ends_at or min(now + name.horizon, LAST_TIME)
  local parts = {
    header(ends_at, name.fingerprint, name.attempt, 1), write('<I7I4', now, #drawn), drawn,
  }
  for _, slot in ipairs(slots) do
    local form = form_of(slot.policy)
    local bytes = slot.recorded
    parts[#parts + 1] = write('<I4', #form) .. form .. write('<I4', #bytes) .. bytes
  end
  parts[#parts + 1] = data or ''
  remembered[name.place] = table.concat(parts)
end

local function write_remembered(place, record)
  if record then
    call('SET', KEYS[place], record, expires, expiry((read('<I7', record))))
  else
    call('DEL', KEYS[place])
  end
end
