-- Many leases: members of the key, which is a sorted set, so that an operation costs the same however
-- many are held.
--
-- A lease has a member for each bit of its cost: the id and the number of the bit. The score is the
-- number of the bit, then the time of expiry since an epoch. So what is held after a time is a count of
-- members per bit. State: at, as in concurrency.lua; the bits, the number of members, the epoch, and last,
-- the latest expiry.
-- Rows: limits/concurrent.rows, operations/leases.rows

-- The changes of this call to the sorted set of each key: members removed and added, each with its expiry;
-- the number of removals; known scores; the number of members; what is used now; and whether the stored
-- set is discarded.
local lease_sets

function algorithms.lease_set()
  -- The longest time since the epoch, and how many expired members of a bit a call removes at most.
  local SPAN, MAX_REMOVED = 562949953421312, 500

  local function text(number)
    return format_text('%d', number)
  end

  -- Calls visit with each bit of a number, and its weight.
  local function each_bit(number, visit)
    local bit, weight = 0, 1
    while weight <= number do
      if number % (2 * weight) >= weight then visit(bit, weight) end
      bit, weight = bit + 1, 2 * weight
    end
  end

  local function member(id, bit)
    return id .. string.char(bit)
  end

  local function weight_of(name)
    return 2 ^ name:byte(17)
  end

  local function changes_of(place)
    local changes = lease_sets[place]
    if not changes then
      changes = {removed = {}, added = {}, removals = 0, known = {}}
      lease_sets[place] = changes
    end
    return changes
  end

  -- Forgets the leases of a key.
  local function clear(place)
    lease_sets[place] = nil
    local changes = changes_of(place)
    changes.is_new, changes.count, changes.used = true, 0, 0
  end

  -- The sum of the bit and the time could be rounded before the epoch is subtracted.
  local function score(epoch, bit, time)
    return text(bit * SPAN + (time - epoch))
  end

  local function finish_of(state, at)
    return state.epoch + tonumber(at) % SPAN
  end

  -- Returns the members of a bit that expire from one time to another, with the times.
  local function range(state, command, bit, from, to, limit)
    if changes_of(state.place).is_new then return {} end
    local low, high = score(state.epoch, bit, from), score(state.epoch, bit, to)
    if command == 'ZREVRANGEBYSCORE' then low, high = high, low end
    local got, members = call(command, KEYS[state.place], low, high, 'WITHSCORES', 'LIMIT', 0, limit), {}
    for index = 1, #got, 2 do
      members[#members + 1] = {name = got[index], finish = finish_of(state, got[index + 1])}
    end
    return members
  end

  local function latest_time(state)
    return state.epoch + SPAN - 1
  end

  -- Returns the sum of the costs of the leases that expire after a time.
  local function held_after(state, time)
    local changes, sum = changes_of(state.place), 0
    if not changes.is_new then
      each_bit(state.bits, function(bit, weight)
        local after = score(state.epoch, bit, time + 1)
        local latest = score(state.epoch, bit, latest_time(state))
        sum = sum + weight * call('ZCOUNT', KEYS[state.place], after, latest)
      end)
    end
    for name, finish in pairs(changes.removed) do
      if finish > time then sum = sum - weight_of(name) end
    end
    for name, finish in pairs(changes.added) do
      if finish > time then sum = sum + weight_of(name) end
    end
    return sum
  end

  -- Calls visit with each member of an id, expired ones included, and the time of expiry.
  local function each_member(state, id, visit)
    local changes = changes_of(state.place)
    each_bit(state.bits, function(bit)
      local name = member(id, bit)
      local finish = changes.added[name]
      if not finish and not changes.removed[name] and not changes.is_new then
        finish = changes.known[name]
        if finish == nil then
          local got = call('ZSCORE', KEYS[state.place], name)
          finish = got and finish_of(state, got)
          changes.known[name] = finish
        end
      end
      if finish then visit(name, finish) end
    end)
  end

  local function remove(changes, name, finish)
    changes.count = changes.count - 1
    if changes.added[name] then
      changes.added[name] = nil
    else
      changes.removed[name], changes.removals = finish, changes.removals + 1
    end
  end

  -- Removes some expired members of each bit, once per call.
  local function remove_expired(state, time)
    local changes = changes_of(state.place)
    if changes.has_removed_expired then return end
    changes.has_removed_expired = true
    each_bit(state.bits, function(bit)
      for _, old in ipairs(range(state, 'ZRANGEBYSCORE', bit, state.epoch, time, MAX_REMOVED)) do
        if not changes.removed[old.name] then remove(changes, old.name, old.finish) end
      end
    end)
  end

  -- Returns when the last lease expires, except that of an id.
  local function last_finish_without(state, id)
    local changes, last = changes_of(state.place), 0
    local function count(name, finish)
      if name:sub(1, 16) ~= id then last = max(last, finish) end
    end
    each_bit(state.bits, function(bit)
      local most = changes.removals + 2
      local top = range(state, 'ZREVRANGEBYSCORE', bit, state.epoch, latest_time(state), most)
      for _, other in ipairs(top) do
        if not changes.removed[other.name] then count(other.name, other.finish) end
      end
    end)
    for name, finish in pairs(changes.added) do count(name, finish) end
    return last
  end

  -- Returns the state after changes.
  local function changed(state, time, used, last)
    local changes = changes_of(state.place)
    changes.used = used
    return {
      at = time, place = state.place, epoch = state.epoch, bits = state.bits, count = changes.count,
      used = used, last = last,
    }
  end

  local function put(state, id, cost, finish)
    local changes, bits = changes_of(state.place), state.bits
    each_member(state, id, function(name, other) remove(changes, name, other) end)
    each_bit(cost, function(bit, weight)
      changes.added[member(id, bit)], changes.count = finish, changes.count + 1
      if bits % (2 * weight) < weight then bits = bits + weight end
    end)
    state.bits = bits
  end

  local lease_set = {}

  function lease_set.read(from, at, place)
    local state, finish = {place = place}, nil
    if #from < at + 28 then return false end
    state.at, state.bits, state.count, state.epoch, state.last, finish = read('<I7I4I4I7I7', from, at)
    state.bits = state.bits % LONG
    local changes = changes_of(place)
    -- One member has the bytes of the key.
    changes.count = changes.count or (read_command('ZCARD', KEYS[place]) or 0) - 1
    return changes.count == state.count and state.last - state.epoch < SPAN, state, finish
  end

  function lease_set.write(state)
    return write('<I7I4I4I7I7', state.at, state.bits + LONG, state.count, state.epoch, state.last)
  end

  -- Returns the sum of the costs that are held at a time.
  function lease_set.used(state, time)
    if not state.used then
      local changes = changes_of(state.place)
      changes.used = changes.used or held_after(state, time)
      state.used = changes.used
    end
    return state.used
  end

  -- Returns the cost of a lease and when it expires, if it is held.
  function lease_set.find(state, usage, id)
    if usage.used == 0 then return nil end
    local cost, ends_at = 0, nil
    each_member(state, id, function(name, finish)
      if finish > usage.time then cost, ends_at = cost + weight_of(name), finish end
    end)
    if ends_at then return cost, ends_at end
  end

  -- Returns the state with those of some leases, each (id, cost, finish), that are held at a time.
  function lease_set.create(place, time, leases)
    clear(place)
    local state, last = {place = place, epoch = time, bits = 0}, 0
    for _, lease in ipairs(leases) do
      if lease[3] > time then
        put(state, lease[1], lease[2], lease[3])
        last = max(last, lease[3])
      end
    end
    return changed(state, time, nil, last)
  end

  -- Returns the leases that expire first after a time; all without a maximum.
  local function first_leases(state, time, most)
    local changes, by_id, leases = changes_of(state.place), {}, {}
    most = most or changes.count
    local function count(name, finish)
      local id = name:sub(1, 16)
      if not by_id[id] then
        by_id[id] = {id, 0, finish}
        leases[#leases + 1] = by_id[id]
      end
      by_id[id][2] = by_id[id][2] + weight_of(name)
    end
    each_bit(state.bits, function(bit)
      local to = latest_time(state)
      for _, own in ipairs(range(state, 'ZRANGEBYSCORE', bit, time + 1, to, most + changes.removals)) do
        if not changes.removed[own.name] then count(own.name, own.finish) end
      end
    end)
    for name, finish in pairs(changes.added) do count(name, finish) end
    table.sort(leases, function(a, b) return a[3] < b[3] or (a[3] == b[3] and a[1] < b[1]) end)
    for index = #leases, most + 1, -1 do leases[index] = nil end
    return leases
  end

  -- The epoch moves long before the span ends.
  local function with_recent_epoch(state, usage, finish)
    if finish - state.epoch < SPAN then return state end
    return lease_set.create(state.place, usage.time, first_leases(state, usage.time))
  end

  -- Adds a lease, whose members of before are removed. last is the latest expiry of the others, if it is
  -- not the state's.
  function lease_set.add(state, usage, id, cost, finish, last)
    state = with_recent_epoch(state, usage, finish)
    remove_expired(state, usage.time)
    local new = {place = state.place, epoch = state.epoch, bits = state.bits}
    put(new, id, cost, finish)
    return changed(new, usage.time, usage.used + cost, max(finish, last or state.last))
  end

  function lease_set.renew(state, usage, id, finish)
    local cost, ends_at = lease_set.find(state, usage, id)
    if not cost then return state end
    local is_last = ends_at == state.last and finish < ends_at
    local last = is_last and last_finish_without(state, id) or nil
    usage = {time = usage.time, used = usage.used - cost}
    return lease_set.add(state, usage, id, cost, finish, last)
  end

  -- Returns nil if no other lease is held.
  function lease_set.release(state, usage, id)
    local cost, finish = lease_set.find(state, usage, id)
    if not cost then return state end
    if usage.used == cost then
      return clear(state.place)
    end
    local changes = changes_of(state.place)
    remove_expired(state, usage.time)
    local last = finish == state.last and last_finish_without(state, id) or state.last
    each_member(state, id, function(name, other) remove(changes, name, other) end)
    return changed(state, state.at, usage.used - cost, last)
  end

  lease_set.clear, lease_set.first_leases = clear, first_leases

  -- Returns when a cost fits, which is now or when enough leases have expired.
  local function fits_at(limit, state, usage, cost)
    local above, changes = usage.used + cost - limit.capacity, changes_of(state.place)
    if above <= 0 or cost > limit.capacity then return usage.time end
    local bit, weight = 0, 1
    while 2 * weight <= state.bits do bit, weight = bit + 1, 2 * weight end
    local is_unchanged = not changes.is_new and not next(changes.added) and not next(changes.removed)
    if weight == state.bits and is_unchanged then
      -- All leases have the same cost.
      local after, latest = usage.time + 1, latest_time(state)
      local skipped = ceil(above / weight) - 1
      local ends = call('ZRANGEBYSCORE', KEYS[state.place], score(state.epoch, bit, after),
        score(state.epoch, bit, latest), 'WITHSCORES', 'LIMIT', skipped, 1)
      return finish_of(state, ends[2])
    end
    local low, high = usage.time, state.last
    while high - low > 1 do
      local middle = floor((low + high) / 2)
      if held_after(state, middle) + cost <= limit.capacity then high = middle else low = middle end
    end
    return high
  end

  -- Returns a few leases that lead to the same answer: the one of an id, and, without an id, one for all
  -- others that expire before a cost fits and one for the rest. With most, the first leases as they are.
  function lease_set.excerpt(limit, state, usage, cost, id, most)
    local leases, listed = {}, 0
    if usage.used == 0 then return leases end
    if most then
      leases = first_leases(state, usage.time, most)
      for _, lease in ipairs(leases) do listed = listed + lease[2] end
      if usage.used > listed then leases[#leases + 1] = {nil, usage.used - listed, state.last} end
      return leases
    end
    local fits = fits_at(limit, state, usage, cost)
    local later = fits == usage.time and usage.used or held_after(state, fits)
    local own, ends_at
    if id then own, ends_at = lease_set.find(state, usage, id) end
    local first = usage.used - later
    if own and ends_at <= fits then first = first - own elseif own then later = later - own end
    local last = own and ends_at == state.last and last_finish_without(state, id) or state.last
    if first > 0 then leases[1] = {nil, first, later > 0 and fits or last} end
    if later > 0 then leases[#leases + 1] = {nil, later, last} end
    if own then leases[#leases + 1] = {id, own, ends_at} end
    return leases
  end

  lease_set.score = score

  return lease_set
end
