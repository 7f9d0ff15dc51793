-- Fixed windows, aligned or opened by the first charge. State: finish, used.
-- Rows: limits/fixed.rows, limits/from-first.rows

function algorithms.window()
  local window = {}

  function window.read(limit, from, at)
    local state = {}
    state.finish, state.used, at = read('<I7I7', from, at)
    local is_valid = state.finish <= LAST_TIME + limit[1] and state.used <= 2 * limit.capacity
    return is_valid, state.used > 0 and state or nil, at
  end

  function window.write(state)
    return write('<I7I7', state and state.finish or 0, state and state.used or 0)
  end

  function window.settle(limit, state)
    if state and state.finish > now then
      local start = max(state.finish - limit[1], 0)
      if start - now <= limit[1] + TRUST_AHEAD then return state end
    end
    local finish = now + limit[1]
    if limit.kind == 1 then finish = finish - (finish - limit[2]) % limit[1] end
    return {finish = finish, used = 0}
  end

  function window.fits(limit, it, cost)
    return it.used + cost <= limit.capacity
  end

  function window.remaining(limit, it)
    return max(limit.capacity - it.used, 0)
  end

  function window.recovers_at(_, _, it)
    return it.used > 0 and it.finish or 0
  end

  function window.charge(limit, _, it, cost)
    return {finish = it.finish, used = min(it.used + cost, 2 * limit.capacity)}
  end

  function window.debt_room(limit, it)
    return max(2 * limit.capacity - it.used, 0)
  end

  function window.refund(limit, state, it, count, time)
    local gone = time and (time < max(it.finish - limit[1], 0) or time >= it.finish)
    local back = gone and 0 or min(count, it.used)
    if back == 0 then return state end
    return it.used > back and {finish = it.finish, used = it.used - back} or nil
  end

  function window.migrate(limit, state)
    local used = min(state.used, limit.capacity)
    return {finish = state.finish, used = used}
  end

  return window
end
