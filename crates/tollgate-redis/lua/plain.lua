-- Checks of one key by token buckets, queues, fixed and weighted windows: most of all that is
-- asked. Nothing is decided here that the general way would decide otherwise; it is the same
-- arithmetic, on the row of numbers that such a key is, without a table for each state.
-- Rows: limits/token-bucket.rows, limits/fixed.rows, limits/from-first.rows, limits/sliding.rows

-- 1 admitted, 0 denied; nothing where the key holds anything but state of just these limits, or
-- state that is ahead of its time.
local function check_plain(policy, key, cost)
  local from, head, values = bytes[key], policy.head, nil
  if from then
    local ahead = #head
    if from:find(head, 1, true) ~= 1 or #from ~= ahead + 7 * policy.fields then return nil end
    values = {read(policy.format, from, ahead + 1)}
  else
    values = {}
  end
  local recovers_at, place = 0, 1
  for index = 1, policy.count do
    local limit = policy[index]
    local kind, capacity = limit.kind, limit.capacity
    if cost > capacity then return 0 end
    local recovers
    if kind == 4 then
      local start = values[place] or 0
      local current, previous = values[place + 1] or 0, values[place + 2] or 0
      local window, tick, ticks = limit[1], limit[2], limit[3]
      if start > now or start % window ~= 0 then return nil end
      if current > 2 * capacity or previous > 2 * capacity then return nil end
      local age = now - start
      if age >= window then
        previous = age < 2 * window and current or 0
        start, current = now - now % window, 0
      end
      local weight = floor(previous * (ticks - floor((now - start) / tick)) / ticks)
      if weight + current + cost > capacity then return 0 end
      if current == 0 and weight == 0 then previous = 0 end
      current = current + cost
      values[place], values[place + 1], values[place + 2] = start, current, previous
      recovers = start + window + max(ticks - floor((ticks - 1) / current), 0) * tick
      place = place + 3
    else
      local at, used = values[place] or 0, values[place + 1] or 0
      if kind == 0 or kind == 6 then
        local per_token, per_tick, tick, full = limit[1], limit[2], limit[3], limit[4]
        if at > now or used > 2 * full or at % tick ~= 0 then return nil end
        local time = now - now % tick
        local ticks = (time - at) / tick
        if ticks >= limit[5] then
          used = 0
        elseif ticks > 0 then
          used = max(used - ticks * per_tick, 0)
        end
        at, used = max(time, at), used + cost * per_token
        if used > full then return 0 end
        recovers = at + ceil(used / per_tick) * tick
      else
        local window = limit[1]
        if used > 2 * capacity or at > now + window then return nil end
        if at <= now then
          at = now + window
          if kind == 1 then at = at - (at - limit[2]) % window end
          used = 0
        end
        used = used + cost
        if used > capacity then return 0 end
        recovers = at
      end
      values[place], values[place + 1] = at, used
      place = place + 2
    end
    if recovers > recovers_at then recovers_at = recovers end
  end
  bytes[key] = head .. write(policy.format, unpack(values, 1, policy.fields))
  recoveries[key] = recovers_at
  return 1
end
