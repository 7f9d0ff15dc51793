-- Requests that carry an id: a repeat within the horizon is told the first answer again. What is
-- kept is the fingerprint of what was asked, and all that the answer followed from.
-- Rows: together/request-ids.rows

local remembered = {}

-- What the id says: 'r' a repeat, whose first answer is added; 'u' used with other arguments; or
-- nothing, if it is new.
local function look_up(place, fingerprint, add)
  local it = remembered[place]
  if it == nil then
    it = ask_for('GET', KEYS[place])
    if not it or #it < 30 then return nil end
  end
  local until_when, first, at = read('<I7c16', it)
  if now >= until_when then return nil end
  if first ~= fingerprint then return 'u' end
  add('i', it:sub(at))
  return 'r'
end

-- Remembers what an admitted answer follows from: the time, the id that was drawn, and for each
-- slot the form of its policy and the bytes of its key as they were.
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

local function write_remembered(place, it)
  call('SET', KEYS[place], it, expires, expiry((read('<I7', it))))
end
