-- Fixed windows, aligned or opened by the first charge. State: finish, used.
-- Rows: limits/fixed.rows, limits/from-first.rows

function algorithms.fixed_window()
  local fixed_window = {}

  function fixed_window.read(limit, from, at)
    local state = {}
    state.finish, state.used, at = read('<I7I7', from, at)
    local is_valid = state.finish <= LAST_TIME + limit[1] and state.used <= 2 * limit.capacity
    return is_valid, state.used > 0 and state or nil, at
  end

  function fixed_window.write(state)
    return write('<I7I7', state and state.finish or 0, state and state.used or 0)
  end

  function fixed_window.advance(limit, state)
    if state and state.finish > now then
      local start = max(state.finish - limit[1], 0)
      if start - now <= limit[1] + TRUST_AHEAD then return state end
    end
    local finish = now + limit[1]
    if limit.kind == 1 then finish = finish - (finish - limit[2]) % limit[1] end
    return {finish = finish, used = 0}
  end

  function fixed_window.fits(limit, usage, cost)
    return usage.used + cost <= limit.capacity
  end

  function fixed_window.remaining(limit, usage)
    return max(limit.capacity - usage.used, 0)
  end

  function fixed_window.recovers_at(_, _, usage)
    return usage.used > 0 and usage.finish or 0
  end

  function fixed_window.charge(limit, _, usage, cost)
    return {finish = usage.finish, used = min(usage.used + cost, 2 * limit.capacity)}
  end

  function fixed_window.max_penalty(limit, usage)
    return max(2 * limit.capacity - usage.used, 0)
  end

  -- A window from its first charge is the open one, or the one that a charge at the time would have opened.
  function fixed_window.backfill(limit, state, usage, cost, _, time)
    local start = max(usage.finish - limit[1], 0)
    local at = max(now, start)
    if time >= now then time = at end
    if limit.kind == 1 then
      if time < start then return state end
    else
      if time + limit[1] <= at then return state end
      if usage.used == 0 then usage = {finish = time + limit[1], used = 0} end
    end
    return fixed_window.charge(limit, state, usage, cost)
  end

  function fixed_window.refund(limit, state, usage, count, time)
    local gone = time and (time < max(usage.finish - limit[1], 0) or time >= usage.finish)
    local back = gone and 0 or min(count, usage.used)
    if back == 0 then return state end
    return usage.used > back and {finish = usage.finish, used = usage.used - back} or nil
  end

  function fixed_window.migrate(limit, state)
    local used = min(state.used, limit.capacity)
    return {finish = state.finish, used = used}
  end

  return fixed_window
end
