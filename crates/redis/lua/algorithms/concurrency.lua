-- Concurrency: leases. State: at, when the newest lease was acquired or renewed; total, the sum of the
-- costs; count; data, a row of (id, cost, finish) in the order of expiry.
-- Rows: limits/concurrent.rows, operations/leases.rows

function algorithms.concurrency()
  local WIDTH, MAX_WINDOW, MAX_LEASES = 25, 31622400000000, 10000

  local function lease(data, index)
    return read('<c16I2I7', data, (index - 1) * WIDTH + 1)
  end

  local function finish_of(data, index)
    local _, _, finish = lease(data, index)
    return finish
  end

  -- Returns the index of a lease, if it is held.
  local function find(state, usage, id)
    local from = usage.first * WIDTH + 1
    while state do
      local at = state.data:find(id, from, true)
      if not at then return nil end
      if at % WIDTH == 1 then return (at - 1) / WIDTH + 1 end
      from = at + 1
    end
  end

  local function without(state, index)
    local _, cost, finish = lease(state.data, index)
    return {
      at = state.at, total = state.total - cost, count = state.count - 1,
      data = state.data:sub(1, (index - 1) * WIDTH) .. state.data:sub(index * WIDTH + 1),
    }, cost, finish
  end

  local function with(state, at, id, cost, finish)
    local before = state.count
    while before > 0 and finish_of(state.data, before) > finish do before = before - 1 end
    local one = write('<c16I2I7', id, cost, finish)
    local split = before * WIDTH
    return {
      at = at, total = state.total + cost, count = state.count + 1,
      data = state.data:sub(1, split) .. one .. state.data:sub(split + 1),
    }
  end

  local concurrency = {}

  function concurrency.read(limit, from, at)
    local state = {}
    if #from < at + 14 then return false end
    state.at, state.total, state.count, at = read('<I7I4I4', from, at)
    local finish = at + state.count * WIDTH
    if #from < finish - 1 or state.total > MAX_LEASES or state.count > MAX_LEASES then return false end
    state.data = from:sub(at, finish - 1)
    if state.count == 0 then return true, nil, finish end
    local is_valid = state.at <= LAST_TIME
      and finish_of(state.data, state.count) <= state.at + MAX_WINDOW
    return is_valid, state, finish
  end

  function concurrency.write(state)
    if not state then return write('<I7I4I4', 0, 0, 0) end
    return write('<I7I4I4', state.at, state.total, state.count) .. state.data
  end

  function concurrency.advance(limit, state)
    if not state then return {time = now, first = 0, used = 0} end
    local longest = max(finish_of(state.data, state.count) - state.at, 0)
    if state.at - now > longest + TRUST_AHEAD then
      return {time = now, first = state.count, used = 0}
    end
    local time, first, used = max(now, state.at), 0, state.total
    while first < state.count do
      local _, cost, finish = lease(state.data, first + 1)
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
    return usage.used > 0 and finish_of(state.data, state.count) or 0
  end

  function concurrency.charge(limit, state, usage, cost, max_entries, id)
    if not id then return state end
    local held = {
      total = usage.used, count = state and state.count - usage.first or 0,
      data = state and state.data:sub(usage.first * WIDTH + 1) or '',
    }
    return with(held, usage.time, id, cost, usage.time + limit[1])
  end

  function concurrency.max_penalty()
    return 0
  end

  function concurrency.refund(limit, state)
    return state
  end

  -- Returns a short state that admits like this one: the lease of an id, and one lease for all others.
  function concurrency.excerpt(limit, state, _, _, _, id)
    local usage = concurrency.advance(limit, state)
    local own, rest, finish = id and find(state, usage, id), 0, 0
    local short = {at = state.at, total = 0, count = 0, data = ''}
    for index = usage.first + 1, state.count do
      local held_by, cost, ends_at = lease(state.data, index)
      if index == own then
        short = with(short, state.at, held_by, cost, ends_at)
      else
        rest, finish = rest + cost, ends_at
      end
    end
    if rest > 0 then short = with(short, state.at, string.rep('\0', 16), rest, finish) end
    return short.count > 0 and short or nil
  end

  -- Returns the cost of a lease, if it is held.
  function concurrency.cost_of(state, usage, id)
    local index = find(state, usage, id)
    if not index then return nil end
    local _, cost = lease(state.data, index)
    return cost
  end

  function concurrency.renew(limit, state, usage, id)
    local index = find(state, usage, id)
    if not index then return state end
    local others, cost = without(state, index)
    return with(others, usage.time, id, cost, usage.time + limit[1])
  end

  function concurrency.release(limit, state, usage, id)
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
