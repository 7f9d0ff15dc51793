-- Sliding window counter. State: start, current, previous. With e ticks since the start of a window of W
-- ticks, the usage is floor(previous * (W - e) / W) + current.
-- Rows: limits/sliding.rows

function algorithms.weighted()
  local function at(limit, start, current, previous, time)
    local elapsed = floor((time - start) / limit[2])
    if current == 0 and floor(previous * (limit[3] - elapsed) / limit[3]) == 0 then previous = 0 end
    return {start = start, current = current, previous = previous, elapsed = elapsed}
  end

  -- The minimum e with floor(count * (W - e) / W) = 0.
  local function ticks_until_none(limit, count)
    return max(limit[3] - floor((limit[3] - 1) / max(count, 1)), 0)
  end

  local function recovers_at(limit, it)
    local time = it.start + it.elapsed * limit[2]
    if it.current > 0 then
      return it.start + limit[1] + ticks_until_none(limit, it.current) * limit[2]
    elseif it.previous > 0 then
      return max(time, it.start + ticks_until_none(limit, it.previous) * limit[2])
    end
    return time
  end

  local function used(limit, it)
    return floor(it.previous * (limit[3] - it.elapsed) / limit[3]) + it.current
  end

  local function kept(start, current, previous)
    if current == 0 and previous == 0 then return nil end
    return {start = start, current = current, previous = previous}
  end

  local weighted = {}

  function weighted.read(limit, from, place)
    local start, current, previous, next_place = read('<I7I7I7', from, place)
    local is_valid = start <= LAST_TIME and start % limit[1] == 0
      and max(current, previous) <= 2 * limit.capacity
    return is_valid, kept(start, current, previous), next_place
  end

  function weighted.write(state)
    return write('<I7I7I7', state and state.start or 0, state and state.current or 0,
      state and state.previous or 0)
  end

  function weighted.settle(limit, state)
    if state and state.start > now then
      local fresh = at(limit, state.start, state.current, state.previous, state.start)
      local recovers_after = recovers_at(limit, fresh) - state.start
      if state.start - now > recovers_after + TRUST_AHEAD then state = nil end
    end
    if not state then return at(limit, now - now % limit[1], 0, 0, now) end
    local time = max(now, state.start)
    local age = time - state.start
    if age < limit[1] then
      return at(limit, state.start, state.current, state.previous, time)
    end
    local previous = age < 2 * limit[1] and state.current or 0
    return at(limit, time - time % limit[1], 0, previous, time)
  end

  function weighted.fits(limit, it, cost)
    return used(limit, it) + cost <= limit.capacity
  end

  function weighted.remaining(limit, it)
    return max(limit.capacity - used(limit, it), 0)
  end

  function weighted.recovers_at(limit, _, it)
    return recovers_at(limit, it)
  end

  function weighted.charge(limit, _, it, cost)
    local current = min(it.current + cost, 2 * limit.capacity)
    return {start = it.start, current = current, previous = it.previous}
  end

  function weighted.debt_room(limit, it)
    return max(2 * limit.capacity - used(limit, it), 0)
  end

  function weighted.refund(limit, state, it, count, time)
    local function within(from, to)
      return not time or (time >= from and time < to)
    end
    local of_current, of_previous = 0, 0
    if within(it.start, it.start + limit[1]) then of_current = min(count, it.current) end
    if within(max(it.start - limit[1], 0), it.start) then
      of_previous = min(count - of_current, it.previous)
    end
    if of_current + of_previous == 0 then return state end
    return kept(it.start, it.current - of_current, it.previous - of_previous)
  end

  function weighted.migrate(limit, state)
    local capacity = limit.capacity
    return kept(state.start, min(state.current, capacity), min(state.previous, capacity))
  end

  return weighted
end
