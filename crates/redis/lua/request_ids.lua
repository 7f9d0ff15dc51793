-- Idempotency: a repeat of a request id within the horizon gets the first answer again. A record has
-- its end, the fingerprint of the request, the attempt that wrote it, whether the request was executed,
-- and then what the answer is computed from.
--
-- A request with keys in several partitions makes an attempt: it claims the id in the partition of its
-- first check, charges the others, and then the first, which decides. Only the attempt that claimed
-- last may do so. It takes over what earlier attempts charged, and takes back only what no later one
-- took over.
-- Rows: together/request-ids.rows

-- The records that this call writes; false for one that it deletes.
local remembered
-- The roles of a named request.
local WHOLE, CLAIM, PART, COMMIT, UNDO, RECALL, LOOK_UP = 0, 1, 2, 3, 4, 5, 6
local HEADER = '<I7c16I7B'

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

-- Records the state of an admitted request: the time, the random id, and for each slot the form of its
-- policy and bytes of its key that lead to the same answer.
local function remember(name, drawn, slots, reservation)
  local ends_at = min(now + name.horizon, LAST_TIME)
  local parts = {
    header(ends_at, name.fingerprint, name.attempt, 1), write('<I7I4', now, #drawn), drawn,
  }
  for _, slot in ipairs(slots) do
    local form = form_of(slot.policy)
    local bytes = slot.recorded
    parts[#parts + 1] = write('<I4', #form) .. form .. write('<I4', #bytes) .. bytes
  end
  parts[#parts + 1] = reservation or ''
  remembered[name.place] = table.concat(parts)
end

local function write_remembered(place, record)
  if record then
    call('SET', KEYS[place], record, expires, expiry((read('<I7', record))))
  else
    call('DEL', KEYS[place])
  end
end
