-- Idempotency: a repeat of a request id within the horizon gets the first answer again. The record has
-- the fingerprint of the request, and the state from which the answer was computed.
-- Rows: together/request-ids.rows

local remembered = {}

-- Looks up an id: 'r' for a repeat, whose record is added; 'u' if it was used with other arguments;
-- nil if it is new.
local function look_up(place, fingerprint, add)
  local record = remembered[place]
  if record == nil then
    record = read_command('GET', KEYS[place])
    if not record or #record < 30 then return nil end
  end
  local until_when, first, at = read('<I7c16', record)
  if now >= until_when then return nil end
  if first ~= fingerprint then return 'u' end
  add('i', record:sub(at))
  return 'r'
end

-- Records the state of an admitted request: the time, the random id, and for each slot the form of its
-- policy and the previous bytes of its key.
local function remember(place, fingerprint, horizon, drawn, slots, reservation)
  local until_when = min(now + horizon, LAST_TIME)
  local parts = {write('<I7c16I7I4', until_when, fingerprint, now, #drawn), drawn}
  for _, slot in ipairs(slots) do
    local form = form_of(slot.policy)
    parts[#parts + 1] = write('<I4', #form) .. form
    local bytes = slot.excerpt or slot.before
    parts[#parts + 1] = write('<I4', #bytes) .. bytes
  end
  parts[#parts + 1] = reservation or ''
  remembered[place] = table.concat(parts)
end

local function write_remembered(place, record)
  call('SET', KEYS[place], record, expires, expiry((read('<I7', record))))
end
