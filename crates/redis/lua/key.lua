-- The contents of a key as tables: the states of the limits of one form of its policy, detached states
-- of other forms, the block, the ban or the denials that are counted towards one, and the index of
-- reservations. The state of an unused limit is nil.
-- Rows: changes/counts.rows, changes/two-forms.rows, changes/clock-steps.rows

local MAGIC, SCHEMA, MAX_DETACHED = 167, 1, 8
local BLOCKED, DETACHED, RESERVED, BANNED = 1, 2, 4, 8

-- By kind, created on first use: a call pays only for the algorithms of its limits.
local constructors = {
  [0] = algorithms.token_bucket, algorithms.fixed_window, algorithms.fixed_window,
  algorithms.sliding_log, algorithms.sliding_window, algorithms.sliding_log,
  algorithms.token_bucket, algorithms.concurrency,
}
local instances = {}
local function algorithm_of(limit)
  local constructor = constructors[limit.kind]
  local instance = instances[constructor]
  if not instance then
    instance = constructor()
    instances[constructor] = instance
  end
  return instance
end

local function advance(limit, state)
  return algorithm_of(limit).advance(limit, state)
end

local function recovers_at(limit, state)
  if not state then return 0 end
  local algorithm = algorithm_of(limit)
  return algorithm.recovers_at(limit, state, algorithm.advance(limit, state))
end

-- Token buckets, queues and sliding window counters have a state per form; the others share one.
local function has_state_per_form(limit)
  return limit.kind == 0 or limit.kind == 4 or limit.kind == 6
end

local function is_log(limit)
  return limit.kind == 3 or limit.kind == 5
end

local function is_list(limit)
  return is_log(limit) or limit.kind == 7
end

-- Parses the limit in the bytes of a form: its kind, then varints (7 bits per byte, low bits first):
-- capacity, window, and the parameters of the kind.
local function limit_of(form)
  local numbers, number, scale = {}, 0, 1
  for at = 2, #form do
    local byte = form:byte(at)
    if byte < 128 then
      numbers[#numbers + 1] = number + byte * scale
      number, scale = 0, 1
    else
      number, scale = number + (byte - 128) * scale, scale * 128
    end
  end
  local kind, capacity, window = form:byte(1) % 16, numbers[1], numbers[2] * 1000
  local a, b, c = numbers[3], numbers[4], numbers[5]
  local limit = {form = form, kind = kind, counts_denied = form:byte(1) >= 16, capacity = capacity}
  limit.identity = kind == 7 and '7' or kind .. ' ' .. numbers[2] .. ' ' .. (kind == 5 and a or 0)
  limit[1] = window
  if kind == 0 or kind == 6 then
    limit[1], limit[2], limit[3], limit[4] = a, b, c, capacity * a
    limit[5] = ceil(2 * limit[4] / b)
  elseif kind == 1 then
    limit[2] = a * 1000
  elseif kind == 3 then
    limit[2] = 1
  elseif kind == 4 then
    limit[2], limit[3] = a, window / a
  elseif kind == 5 then
    limit[1], limit[2] = window + b * a * 1000, a * 1000
  end
  return limit
end

-- The form of a policy: the bytes of its limits, which are parsed already.
local numbers = {}
local function form_of(policy)
  if not policy.form then
    policy.form = policy.head:sub(6)
    numbers[policy.form] = policy
  end
  return policy.form
end

-- The limits of a form, each with its rank among the limits of the same identity; the number of known forms.
local known, form_count = {}, 0
local function limits_of(form)
  local limits = known[form]
  if limits then return limits end
  limits = {}
  local ranks, at = {}, 1
  while at <= #form do
    local length = form:byte(at)
    local limit = limit_of(form:sub(at + 1, at + length))
    limit.rank = ranks[limit.identity] or 0
    ranks[limit.identity] = limit.rank + 1
    limits[#limits + 1] = limit
    at = at + 1 + length
  end
  known[form], form_count = limits, form_count + 1
  return limits
end

-- The limits of a form, possibly without identity and rank.
local function numbers_of_form(form)
  return numbers[form] or limits_of(form)
end

-- By key: whether it can get another type. A variable of a call.
local changeable

-- The limit is detached, or at an index of a form.
function row_at(place, limit, form, index)
  limit = form and limits_of(form)[index] or limit
  limit.row_name = limit.row_name or (limit.identity .. ' ' .. limit.rank .. ' ')
  return row_of(place, limit.row_name)
end

-- Parses the bytes of a key; returns nil if they are corrupt.
local function parse(from, key_place)
  local key = {detached = {}}
  local flags, length, at = read('<BH', from, 3)
  key.form, at = from:sub(at, at + length - 1), at + length
  if flags % 2 == BLOCKED then
    if #from < at + 6 then return nil end
    key.block, at = read('<I7', from, at)
  end
  if flags >= BANNED then
    local ban = {}
    ban.finish, ban.denials, at = read('<I7I7', from, at)
    key.ban = ban.finish > now and ban or nil
    flags = flags - BANNED
  end
  if flags >= RESERVED then
    local index = {}
    index.latest, index.first, index.count, index.held, at = read('<I7I7I4I4', from, at)
    key.reserved = index.latest > now and index or nil
    flags = flags - RESERVED
  end
  for place, limit in ipairs(numbers_of_form(key.form)) do
    local is_valid
    is_valid, key[place], at = algorithm_of(limit).read(limit, from, at, key_place, key.form, place)
    if not is_valid then return nil end
  end
  if flags >= DETACHED then
    local count
    count, at = read('<B', from, at)
    for place = 1, count do
      local rank, size, is_valid, state
      rank, size, at = read('<BB', from, at)
      local limit = limit_of(from:sub(at, at + size - 1))
      limit.rank = rank
      is_valid, state, at = algorithm_of(limit).read(limit, from, at + size, key_place)
      if not is_valid then return nil end
      key.detached[place] = {limit = limit, state = state}
    end
  end
  return at == #from + 1 and key or nil
end

-- Loads the key at an index; returns nil if its schema is unknown, and leaves it unchanged.
local function load(place)
  local from = bytes[place]
  if not from then return {detached = {}} end
  local magic, schema = from:byte(1, 2)
  if magic == MAGIC and schema ~= SCHEMA and #from > 5 then return nil end
  -- Parsing fails at the end of bytes that are too short.
  local whole, key = pcall(parse, from, place)
  if command_error then error(command_error) end
  if magic == MAGIC and whole and key then return key end
  -- Mark it in the reply, because the bytes may look intact: the blocks of a long log may be missing.
  corrupt, bytes[place], reply[place + 3] = corrupt + 1, false, '?'
  rows[place], hashes[place], sorted_sets[place], lease_sets[place] = nil, nil, nil, nil
  return {detached = {}}
end

-- Adds the bytes of a state, which may have three parts.
local function add_bytes(parts, first, second, third)
  local count = #parts
  parts[count + 1], parts[count + 2], parts[count + 3] = first, second, third
end

-- Returns the bytes of a key, when its state recovers, and whether it is empty. The time of an excerpt is
-- not needed.
local function encode(key, is_excerpt)
  local parts, limits = {'', '', ''}, numbers_of_form(key.form)
  local flags, until_when, empty = 0, 0, true
  if key.block then
    flags, empty, parts[2] = BLOCKED, false, write('<I7', key.block)
    until_when = key.block == 0 and LAST_TIME or key.block - 1
  end
  local ban, index = key.ban, key.reserved
  if ban then
    flags, empty, parts[2] = flags + BANNED, false, parts[2] .. write('<I7I7', ban.finish, ban.denials)
    until_when = max(until_when, ban.finish)
  end
  if index then
    flags, empty = flags + RESERVED, false
    parts[3] = write('<I7I7I4I4', index.latest, index.first, index.count, index.held)
    until_when = max(until_when, index.latest)
  end
  for index, limit in ipairs(limits) do
    local state = key[index]
    add_bytes(parts, algorithm_of(limit).write(state))
    if state then
      empty = false
      if not is_excerpt then until_when = max(until_when, recovers_at(limit, state)) end
    end
  end
  if #key.detached > 0 then
    flags, empty = flags + DETACHED, false
    parts[#parts + 1] = write('<B', #key.detached)
    for _, detached in ipairs(key.detached) do
      local limit, state = detached.limit, detached.state
      parts[#parts + 1] = write('<BB', limit.rank, #limit.form) .. limit.form
      add_bytes(parts, algorithm_of(limit).write(state))
      until_when = max(until_when, recovers_at(limit, state))
    end
  end
  -- A policy has the head of a key without flags.
  parts[1] = flags == 0 and limits.head or write('<BBBH', MAGIC, SCHEMA, flags, #key.form) .. key.form
  return table.concat(parts), until_when, empty
end

-- Calls visit with each state of a key that has a list: its limit, the table and the field of the state,
-- and the arguments. Arguments cost less than a closure for each call.
local function each_list(key, visit, a, b, c, d, e)
  local limits = key.form and numbers_of_form(key.form)
  for index = 1, limits and #limits or 0 do
    local limit = limits[index]
    if is_list(limit) and key[index] then visit(limit, key, index, a, b, c, d, e) end
  end
  for _, detached in ipairs(key.detached) do
    local limit = detached.limit
    if is_list(limit) and detached.state then visit(limit, detached, 'state', a, b, c, d, e) end
  end
end

-- Returns whether a key can get another type, which takes two commands: after the first one, a node of a
-- cluster that migrates the slot has no such key, and redirects the second.
local function can_change_type(place)
  if changeable[place] == nil then
    local is_stored = reply[place + 3] or (foreign and foreign[place])
    -- The name is longer than that of any key.
    local unknown = is_stored and redis.pcall('EXISTS', KEYS[place] .. string.rep('#', 300)) or 0
    changeable[place] = type(unknown) == 'number'
  end
  return changeable[place]
end

-- Returns the state of the first concurrency limit if its leases are members of the key, because they
-- are too many for the bytes. All other leases are in the bytes; so are those of a key with reservations,
-- which are fields.
local function with_many_leases(place, key)
  local first
  for index, limit in ipairs(numbers_of_form(key.form)) do
    if limit.kind == 7 and not key.reserved then first = first or index end
  end
  if not first and not lease_sets[place] then return nil end
  each_list(key, function(limit, holder, name)
    if limit.kind == 7 and not (holder == key and name == first) then
      holder[name] = algorithm_of(limit).shorten(holder[name])
    end
  end)
  if not first or not key[first] then return nil end
  local state = key[first]
  if not state.epoch and state.count > short_leases
    and (sorted_sets[place] or can_change_type(place)) then
    state = algorithm_of(numbers_of_form(key.form)[first]).lengthen(state, place)
    key[first] = state
  end
  return state.epoch and state
end

-- Makes a log short or long, as the key requires; adds it to the long ones if it is.
local function put_log(limit, holder, name, place, key, many, long)
  local state = holder[name]
  if not is_log(limit) then return end
  if many and not state.data then
    state = algorithm_of(limit).shorten(state)
  elseif not many and holder == key and state.data and state.count > short_log
    and (hashes[place] or can_change_type(place)) then
    state = algorithm_of(limit).lengthen(state, row_at(place, limit, key.form, name))
  end
  holder[name] = state
  if not state.data then long[#long + 1] = state end
end

local function save(place, key)
  local long, many = {}, with_many_leases(place, key)
  each_list(key, put_log, place, key, many, long)
  for _, state in ipairs(long) do state.row.blocks = state.blocks end
  local to, until_when, empty = encode(key)
  recoveries[place], bytes[place] = until_when, not empty and to
  many_leases[place] = many
  if not many then sorted_sets[place] = nil end
  if #long > 0 or key.reserved then
    hashed_logs[place] = long
  else
    -- If it becomes a hash again, nothing of it remains.
    hashed_logs[place], reserved[place], hashes[place] = nil, nil, nil
  end
end

-- Returns the index of the limit with the same identity and rank.
local function place_of(limits, other)
  for index, limit in ipairs(limits) do
    if limit.identity == other.identity and limit.rank == other.rank then return index end
  end
end

-- Returns the state for a limit of another form: its own, or else that of the form charged last,
-- migrated. The forms of a key are its own, then the detached ones, newest first.
local function read_as(limit, of_key)
  local exact, newest
  for _, version in ipairs(of_key) do
    if version.limit.identity == limit.identity and version.limit.rank == limit.rank then
      if version.limit.form == limit.form then exact = exact or version end
      if version.state then newest = newest or version end
    end
  end
  local from = exact or newest
  if not from or not from.state or from.limit.form == limit.form then return from and from.state end
  return algorithm_of(limit).migrate(limit, from.state, from.limit)
end

-- Migrates a key to the form of a policy. States that no limit of the policy continues are detached
-- until they recover; beyond MAX_DETACHED, the soonest to recover are dropped.
local function in_form_of(policy, key)
  local form = form_of(policy)
  if not key.form or key.form == form then
    key.form = form
    return key
  end
  local of_key = {}
  for index, limit in ipairs(limits_of(key.form)) do
    of_key[index] = {limit = limit, state = key[index]}
  end
  for _, version in ipairs(key.detached) do of_key[#of_key + 1] = version end
  local migrated, limits = {form = form, block = key.block, detached = {}}, limits_of(form)
  migrated.reserved, migrated.ban = key.reserved, key.ban
  for index, limit in ipairs(limits) do migrated[index] = read_as(limit, of_key) end
  local detached = migrated.detached
  for _, version in ipairs(of_key) do
    local limit = limits[place_of(limits, version.limit)]
    local is_continued = limit
      and (not has_state_per_form(limit) or limit.form == version.limit.form)
    version.recovers_at = recovers_at(version.limit, version.state)
    if version.state and not is_continued and version.recovers_at > now then
      detached[#detached + 1] = version
    end
  end
  while #detached > MAX_DETACHED do
    local soonest = #detached
    for place = #detached, 1, -1 do
      if detached[place].recovers_at < detached[soonest].recovers_at then soonest = place end
    end
    table.remove(detached, soonest)
  end
  return migrated
end

-- Charges detached states: cost_of returns the cost for the index of a limit and the detached limit. With a
-- time, sliding window counters are charged where it counts. States that have recovered are dropped.
local function charge_detached(key, cost_of, time)
  if #key.detached == 0 then return end
  local limits, unrecovered = limits_of(key.form), {}
  for _, detached in ipairs(key.detached) do
    local limit, state = detached.limit, detached.state
    if recovers_at(limit, state) > now then
      local place, algorithm = place_of(limits, limit), algorithm_of(limit)
      local cost = place and cost_of(place, limit) or 0
      if cost > 0 then
        local change = time and algorithm.backfill or algorithm.charge_at_most or algorithm.charge
        detached.state = change(limit, state, algorithm.advance(limit, state), cost, nil, time)
      end
      unrecovered[#unrecovered + 1] = detached
    end
  end
  key.detached = unrecovered
end

-- Writes a key with many leases: a sorted set whose first member has the bytes.
local function write_sorted_set(place, to, expires_at)
  local name, changes, state = KEYS[place], lease_sets[place], many_leases[place]
  local added, removed = {'-1', 's' .. to}, {}
  local previous = reply[place + 3]
  if previous and previous ~= to then removed[1] = 's' .. previous end
  if changes.is_new or not sorted_sets[place] then call('DEL', name) end
  local score = algorithms.lease_set().score
  for member, finish in pairs(changes.added) do
    added[#added + 1] = score(state.epoch, member:byte(17), finish)
    added[#added + 1] = member
  end
  for member in pairs(changes.removed) do
    if not changes.added[member] then removed[#removed + 1] = member end
  end
  -- In this order, the key is never empty: it would be deleted.
  call_with('ZADD', name, added)
  call_with('ZREM', name, removed)
  call(injected and 'PEXPIRE' or 'PEXPIREAT', name, expires_at)
end
