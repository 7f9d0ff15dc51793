-- Sliding window counter. State: start, current, previous. With e ticks since the start of a window of W
-- ticks, the usage is floor(previous * (W - e) / W) + current.
-- Rows: limits/sliding.rows

function algorithms.sliding_window()
  local function at(limit, start, current, previous, time)
    local elapsed = floor((time - start) / limit[2])
    if current == 0 and floor(previous * (limit[3] - elapsed) / limit[3]) == 0 then previous = 0 end
    return {start = start, current = current, previous = previous, elapsed = elapsed}
  end

  -- The minimum e with floor(count * (W - e) / W) = 0.
  local function ticks_until_none(limit, count)
    return max(limit[3] - floor((limit[3] - 1) / max(count, 1)), 0)
  end

  local function recovers_at(limit, usage)
    local time = usage.start + usage.elapsed * limit[2]
    if usage.current > 0 then
      return usage.start + limit[1] + ticks_until_none(limit, usage.current) * limit[2]
    elseif usage.previous > 0 then
      return max(time, usage.start + ticks_until_none(limit, usage.previous) * limit[2])
    end
    return time
  end

  local function used(limit, usage)
    return floor(usage.previous * (limit[3] - usage.elapsed) / limit[3]) + usage.current
  end

  local function state_of(start, current, previous)
    if current == 0 and previous == 0 then return nil end
    return {start = start, current = current, previous = previous}
  end

  local sliding_window = {}

  function sliding_window.read(limit, from, place)
    local start, current, previous, next_place = read('<I7I7I7', from, place)
    local is_valid = start <= LAST_TIME and start % limit[1] == 0
      and max(current, previous) <= 2 * limit.capacity
    return is_valid, state_of(start, current, previous), next_place
  end

  function sliding_window.write(state)
    return write('<I7I7I7', state and state.start or 0, state and state.current or 0,
      state and state.previous or 0)
  end

  function sliding_window.advance(limit, state)
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

  function sliding_window.fits(limit, usage, cost)
    return used(limit, usage) + cost <= limit.capacity
  end

  function sliding_window.remaining(limit, usage)
    return max(limit.capacity - used(limit, usage), 0)
  end

  function sliding_window.recovers_at(limit, _, usage)
    return recovers_at(limit, usage)
  end

  function sliding_window.charge(limit, _, usage, cost)
    local current = min(usage.current + cost, 2 * limit.capacity)
    return {start = usage.start, current = current, previous = usage.previous}
  end

  function sliding_window.max_penalty(limit, usage)
    return max(2 * limit.capacity - used(limit, usage), 0)
  end

  -- Charges the count of a time's window, unless the previous window would have recovered with the cost.
  -- Returns the new state and how much was charged.
  function sliding_window.backfill(limit, state, usage, cost, _, time)
    if time >= min(usage.start, now) then
      local charged = sliding_window.charge(limit, state, usage, cost)
      return charged, charged.current - usage.current
    end
    if time < usage.start - limit[1] then return state end
    local charged = min(cost, 2 * limit.capacity - usage.previous)
    local previous = usage.previous + charged
    local is_used = used(limit, {current = usage.current, previous = previous, elapsed = usage.elapsed}) > 0
    if charged == 0 or not is_used then return state end
    return state_of(usage.start, usage.current, previous), charged
  end

  function sliding_window.refund(limit, state, usage, count, time)
    local function within(from, to)
      return not time or (time >= from and time < to)
    end
    local of_current, of_previous = 0, 0
    if within(usage.start, usage.start + limit[1]) then of_current = min(count, usage.current) end
    if within(max(usage.start - limit[1], 0), usage.start) then
      of_previous = min(count - of_current, usage.previous)
    end
    if of_current + of_previous == 0 then return state end
    return state_of(usage.start, usage.current - of_current, usage.previous - of_previous)
  end

  function sliding_window.migrate(limit, state)
    local capacity = limit.capacity
    return state_of(state.start, min(state.current, capacity), min(state.previous, capacity))
  end

  return sliding_window
end
