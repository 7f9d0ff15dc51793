-- Concurrency: leases. State: at, when the newest lease was acquired or renewed; total, the sum of the
-- costs; count; a row of (id, cost, finish) in the order of expiry, which is in data from a position on. Many
-- leases are in a sorted set: lease_set.lua.
-- Rows: limits/concurrent.rows, operations/leases.rows

function algorithms.concurrency()
  local instance
  local function lease_set()
    instance = instance or algorithms.lease_set()
    return instance
  end

  local function lease(state, index)
    return read(LEASE, state.data, state.from + (index - 1) * LEASE_LENGTH)
  end

  local function finish_of(state, index)
    local _, _, finish = lease(state, index)
    return finish
  end

  -- Returns the bytes of the leases after the first ones, up to an index.
  local function row(state, first, last)
    if first >= last then return '' end
    return state.data:sub(state.from + first * LEASE_LENGTH, state.from + last * LEASE_LENGTH - 1)
  end

  -- Returns the index of a lease, if it is held.
  local function find(state, usage, id)
    if not state then return nil end
    local from, finish = state.from + usage.first * LEASE_LENGTH, state.from + state.count * LEASE_LENGTH
    while true do
      local at = state.data:find(id, from, true)
      if not at or at >= finish then return nil end
      if (at - state.from) % LEASE_LENGTH == 0 then return (at - state.from) / LEASE_LENGTH + 1 end
      from = at + 1
    end
  end

  local function without(state, index)
    local _, cost = lease(state, index)
    return {
      at = state.at, total = state.total - cost, count = state.count - 1, from = 1,
      data = row(state, 0, index - 1) .. row(state, index, state.count),
    }, cost
  end

  local function with(state, at, id, cost, finish)
    local before = state.count
    while before > 0 and finish_of(state, before) > finish do before = before - 1 end
    local one = write(LEASE, id, cost, finish)
    return {
      at = at, total = state.total + cost, count = state.count + 1, from = 1,
      data = row(state, 0, before) .. one .. row(state, before, state.count),
    }
  end

  -- Returns a row of leases, each (id, cost, finish); nil if there are none.
  local function row_of_leases(at, leases)
    if #leases == 0 then return nil end
    table.sort(leases, function(a, b) return a[3] < b[3] end)
    local parts, total = {}, 0
    for index, one in ipairs(leases) do
      parts[index], total = write(LEASE, one[1], one[2], one[3]), total + one[2]
    end
    return {at = at, total = total, count = #leases, data = table.concat(parts), from = 1}
  end

  local concurrency = {}

  function concurrency.read(limit, from, at, key_place)
    local state, start = {}, at
    if #from < at + 14 then return false end
    state.at, state.total, state.count, at = read('<I7I4I4', from, at)
    if state.total >= LONG then
      local is_valid, many, finish = lease_set().read(from, start, key_place)
      is_valid = is_valid and many.at <= LAST_TIME and many.last <= many.at + MAX_WINDOW
      return is_valid, many, finish
    end
    local finish = at + state.count * LEASE_LENGTH
    if #from < finish - 1 or state.total > MAX_LEASES or state.count > MAX_LEASES then return false end
    state.data, state.from = from, at
    if state.count == 0 then return true, nil, finish end
    local is_valid = state.at <= LAST_TIME
      and finish_of(state, state.count) <= state.at + MAX_WINDOW
    return is_valid, state, finish
  end

  function concurrency.write(state)
    if not state then return write('<I7I4I4', 0, 0, 0) end
    if state.epoch then return lease_set().write(state) end
    return write('<I7I4I4', state.at, state.total, state.count), row(state, 0, state.count)
  end

  local function last_finish(state)
    return state.last or finish_of(state, state.count)
  end

  function concurrency.advance(limit, state)
    if not state then return {time = now, first = 0, used = 0} end
    local longest = max(last_finish(state) - state.at, 0)
    if state.at - now > longest + TRUST_AHEAD then
      return {time = now, first = state.count, used = 0}
    end
    local time = max(now, state.at)
    if state.epoch then return {time = time, first = 0, used = lease_set().used(state, time)} end
    local first, used = 0, state.total
    while first < state.count do
      local _, cost, finish = lease(state, first + 1)
      if finish > time then break end
      first, used = first + 1, used - cost
    end
    return {time = time, first = first, used = used}
  end

  function concurrency.fits(limit, usage, cost)
    return usage.used + cost <= limit.capacity
  end

  function concurrency.remaining(limit, usage)
    return max(limit.capacity - usage.used, 0)
  end

  function concurrency.recovers_at(limit, state, usage)
    return usage.used > 0 and last_finish(state) or 0
  end

  function concurrency.charge(limit, state, usage, cost, max_entries, id)
    if not id then return state end
    local finish = usage.time + limit[1]
    if state and state.epoch then
      if usage.used > 0 then return lease_set().add(state, usage, id, cost, finish) end
      state = lease_set().clear(state.place)
    end
    local held = {
      total = usage.used, count = state and state.count - usage.first or 0,
      data = state and state.data, from = state and state.from + usage.first * LEASE_LENGTH,
    }
    return with(held, usage.time, id, cost, finish)
  end

  -- Returns the leases of a key as a sorted set.
  function concurrency.lengthen(state, place)
    local leases = {}
    for index = 1, state.count do leases[index] = {lease(state, index)} end
    return lease_set().create(place, state.at, leases)
  end

  -- Returns the leases as a row.
  function concurrency.shorten(state)
    if not state.epoch then return state end
    return row_of_leases(state.at, lease_set().first_leases(state, state.at))
  end

  function concurrency.max_penalty()
    return 0
  end

  function concurrency.refund(limit, state)
    return state
  end

  -- Returns an id that is not this one, for several leases as one.
  local function other_id(id)
    return id and string.char((id:byte() + 1) % 256) .. id:sub(2) or string.rep('\255', 16)
  end

  -- Returns a short state that leads to the same answer to an operation of this cost: the lease of an id,
  -- one for the others that expire before the cost fits, and one for the rest.
  function concurrency.excerpt(limit, state, cost, id, most)
    local usage = concurrency.advance(limit, state)
    if state.epoch then
      local leases = lease_set().excerpt(limit, state, usage, cost, id, most)
      for _, held in ipairs(leases) do held[1] = held[1] or other_id(id) end
      return row_of_leases(state.at, leases)
    end
    local own, leases, groups = id and find(state, usage, id), {}, {}
    local above = usage.used + cost - limit.capacity
    for index = usage.first + 1, state.count do
      local held_by, its_cost, ends_at = lease(state, index)
      if index == own then
        leases[1] = {held_by, its_cost, ends_at}
      else
        local group = above > 0 and 1 or 2
        local sum = groups[group] and groups[group][2] or 0
        groups[group] = {other_id(id), sum + its_cost, ends_at}
      end
      above = above - its_cost
    end
    for _, group in pairs(groups) do leases[#leases + 1] = group end
    return row_of_leases(state.at, leases)
  end

  -- Returns the cost of a lease, if it is held.
  function concurrency.cost_of(state, usage, id)
    if state.epoch then return (lease_set().find(state, usage, id)) end
    local index = find(state, usage, id)
    if not index then return nil end
    local _, cost = lease(state, index)
    return cost
  end

  function concurrency.renew(limit, state, usage, id)
    local finish = usage.time + limit[1]
    if state.epoch then return lease_set().renew(state, usage, id, finish) end
    local index = find(state, usage, id)
    if not index then return state end
    local others, cost = without(state, index)
    return with(others, usage.time, id, cost, finish)
  end

  function concurrency.release(limit, state, usage, id)
    if state.epoch then return lease_set().release(state, usage, id) end
    local index = find(state, usage, id)
    if not index then return state end
    local others = without(state, index)
    return others.count > 0 and others or nil
  end

  function concurrency.migrate(limit, state)
    return state
  end

  return concurrency
end
