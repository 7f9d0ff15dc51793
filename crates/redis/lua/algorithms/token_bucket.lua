-- Token bucket and queue: usage that drains at a constant rate. State: at, used.
-- Rows: limits/token-bucket.rows, limits/queue.rows, limits/coarse-tick.rows

function algorithms.token_bucket()
  local function drained_at(limit, at, units)
    return at + ceil(units / limit[2]) * limit[3]
  end

  local function drain(limit, state, time)
    local at = time - time % limit[3]
    local ticks, used = max(at - state.at, 0) / limit[3], 0
    if ticks < limit[5] then used = max(state.used - ticks * limit[2], 0) end
    return {at = at, used = used}
  end

  local function fits_at(limit, usage, cost)
    return drained_at(limit, usage.at, max(usage.used + cost * limit[1] - limit[4], 0))
  end

  local token_bucket = {}

  function token_bucket.read(limit, from, at)
    local state = {}
    state.at, state.used, at = read('<I7I7', from, at)
    local is_valid = state.at <= LAST_TIME and state.at % limit[3] == 0 and state.used <= 2 * limit[4]
    return is_valid, state.used > 0 and state or nil, at
  end

  function token_bucket.write(state)
    return write('<I7I7', state and state.at or 0, state and state.used or 0)
  end

  function token_bucket.advance(limit, state)
    if state and state.at > now then
      local recovers_after = drained_at(limit, state.at, state.used) - state.at
      if state.at - now > recovers_after + TRUST_AHEAD then state = nil end
    end
    if not state then return {at = now - now % limit[3], used = 0} end
    return drain(limit, state, max(now, state.at))
  end

  function token_bucket.fits(limit, usage, cost)
    return usage.used + cost * limit[1] <= limit[4]
  end

  function token_bucket.remaining(limit, usage)
    return max(floor((limit[4] - usage.used) / limit[1]), 0)
  end

  function token_bucket.recovers_at(limit, _, usage)
    return drained_at(limit, usage.at, usage.used)
  end

  function token_bucket.acts_at(limit, usage, cost)
    if limit.kind == 0 then
      return token_bucket.fits(limit, usage, cost) and 0 or fits_at(limit, usage, cost)
    end
    local ticks = floor(usage.used / limit[2])
    local rest = ceil((usage.used - ticks * limit[2]) * limit[3] / limit[2])
    return usage.at + ticks * limit[3] + rest
  end

  function token_bucket.reserves_at(limit, usage, cost)
    local room = limit.kind == 6 and limit[4] or 2 * limit[4]
    local above = usage.used + cost * limit[1] - room
    return above <= 0 and 0 or drained_at(limit, usage.at, above)
  end

  function token_bucket.charge(limit, _, usage, cost)
    return {at = usage.at, used = usage.used + cost * limit[1]}
  end

  -- Charges any cost, up to twice the capacity.
  function token_bucket.charge_at_most(limit, _, usage, cost)
    return {at = usage.at, used = min(usage.used + cost * limit[1], 2 * limit[4])}
  end

  function token_bucket.max_penalty(limit, usage)
    return max(floor((2 * limit[4] - usage.used) / limit[1]), 0)
  end

  -- recovers_at is when the limit would have recovered after the charge: no more is refunded than would
  -- still be used without later charges.
  function token_bucket.refund(limit, state, usage, count, time, recovers_at)
    if limit.kind == 6 and time and state.at > time then return state end
    local units = min(count * limit[1], usage.used)
    if recovers_at then
      local ticks = min(floor(max(recovers_at - usage.at, 0) / limit[3]), limit[5])
      units = min(units, ticks * limit[2])
    end
    if units == 0 then return state end
    local used = state.used - units
    return used > 0 and {at = state.at, used = used} or nil
  end

  -- Cancels a reservation; mark is the level just after it was charged.
  function token_bucket.cancel(limit, state, usage, mark, cost)
    local ahead = drain(limit, mark, max(usage.at, mark.at)).used
    local behind = max(usage.used - ahead, 0)
    if limit.kind == 6 and behind > 0 then return state end
    local units = min(max(cost * limit[1] - behind, 0), usage.used)
    if units == 0 then return state end
    local used = state.used - units
    return used > 0 and {at = state.at, used = used} or nil
  end

  function token_bucket.migrate(limit, state, old)
    local a, b = limit[1], old[1]
    while b ~= 0 do a, b = b, a % b end
    local tokens = floor(state.used / old[1])
    local rest = state.used - tokens * old[1]
    if rest > 0 then
      if limit[1] / a * old[1] < EXACT then
        rest = ceil(rest * (limit[1] / a) / (old[1] / a))
      else
        rest = limit[1]
      end
    end
    local used = min(tokens * limit[1] + rest, limit[4])
    return used > 0 and {at = ceil(state.at / limit[3]) * limit[3], used = used} or nil
  end

  return token_bucket
end
