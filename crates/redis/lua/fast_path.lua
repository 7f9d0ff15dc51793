-- The fast path: checks of one key by token buckets, queues, fixed windows and sliding window counters,
-- which are most requests. For logs and leases see fast_lists.lua. It decides like the general path, with the same arithmetic on the numbers of
-- the key, but without a table for each state.
-- Rows: limits/token-bucket.rows, limits/fixed.rows, limits/from-first.rows, limits/sliding.rows

-- Charges a limit: returns its new numbers, when it recovers, and whether a denial is counted; false if
-- it denies without counting, nil if the general path must decide.

local function charge_token_bucket(limit, at, used, _, cost)
  local per_token, per_tick, tick, full = limit[1], limit[2], limit[3], limit[4]
  if at > now or used > 2 * full or at % tick ~= 0 then return nil end
  local time = now - now % tick
  local ticks = (time - at) / tick
  if ticks >= limit[5] then
    used = 0
  elseif ticks > 0 then
    used = used - ticks * per_tick
    if used < 0 then used = 0 end
  end
  used = used + cost * per_token
  if used > full then return false end
  return time, used, nil, time + ceil(used / per_tick) * tick
end

local function charge_fixed_window(limit, finish, used, _, cost)
  local window = limit[1]
  if used > 2 * limit.capacity or finish > now + window then return nil end
  if finish <= now then
    finish, used = now + window, 0
    if limit.kind == 1 then finish = finish - (finish - limit[2]) % window end
  end
  used = used + cost
  if used <= limit.capacity then return finish, used, nil, finish end
  return limit.counts_denied and finish, min(used, 2 * limit.capacity), nil, finish, true
end

local function charge_sliding_window(limit, start, current, previous, cost)
  local window, tick, ticks, capacity = limit[1], limit[2], limit[3], limit.capacity
  if start > now or start % window ~= 0 then return nil end
  if current > 2 * capacity or previous > 2 * capacity then return nil end
  local age = now - start
  if age >= window then
    previous = age < 2 * window and current or 0
    start, current = now - now % window, 0
  end
  local weight = floor(previous * (ticks - floor((now - start) / tick)) / ticks)
  local denied = weight + current + cost > capacity
  if denied and not limit.counts_denied then return false end
  if current == 0 and weight == 0 then previous = 0 end
  current = min(current + cost, 2 * capacity)
  local recovers_at = start + window + max(ticks - floor((ticks - 1) / current), 0) * tick
  return start, current, previous, recovers_at, denied
end

charges[0], charges[6], charges[4] = charge_token_bucket, charge_token_bucket, charge_sliding_window
charges[1], charges[2] = charge_fixed_window, charge_fixed_window

-- Checks a key with one limit. Returns 1 if admitted, 0 if denied, nil if the general path must decide.
function check_one(policy, key, cost)
  local limit, from, head, a, b, c = policy[1], bytes[key], policy.head, 0, 0, 0
  if cost > limit.capacity then return 0 end
  if from then
    if #from ~= policy.length then return nil end
    head, a, b, c = read(policy.format, from)
    if head ~= policy.head then return nil end
  end
  local recovers_at, denied
  a, b, c, recovers_at, denied = limit.charge(limit, a, b, c, cost)
  if not a then return a == false and 0 or nil end
  bytes[key], recoveries[key] = write(policy.format, head, a, b, c), recovers_at
  return denied and 0 or 1
end

function check_limits(policy, key, cost)
  local from, values = bytes[key], {policy.head}
  if from then
    if #from ~= policy.length then return nil end
    values = {read(policy.format, from)}
    if values[1] ~= policy.head then return nil end
  end
  local recovers_at, place = 0, 2
  for index = 1, policy.count do
    local limit = policy[index]
    if cost > limit.capacity then return 0 end
    local a, b, c = values[place] or 0, values[place + 1] or 0, values[place + 2] or 0
    local recovers
    a, b, c, recovers = limit.charge(limit, a, b, c, cost)
    if not a then return a == false and 0 or nil end
    values[place], values[place + 1] = a, b
    if c then values[place + 2] = c end
    place = place + limit.numbers
    if recovers > recovers_at then recovers_at = recovers end
  end
  bytes[key], recoveries[key] = write(policy.format, unpack(values, 1, place - 1)), recovers_at
  return 1
end

-- Several checks of a request: if one denies, the charges of the others are undone. Limits that count
-- denials and shadow policies are decided even then, so they need the general path.
local function check_multiple(requests, at, checks)
  local verdict, all_fast, charged = 1, true, {}
  for _ = 1, checks do
    local place, key, cost, next_at = read('<HHI7', requests, at)
    local arg = ARGV[place + 3]
    local policy = parsed[arg] or new_policy(arg)
    all_fast = all_fast and policy.fast_path == 1 and cost > 0
    if all_fast and verdict == 1 then
      local previous, recovered_at = bytes[key], recoveries[key]
      verdict = policy.check(policy, key, cost)
      if verdict == 1 then charged[#charged + 1] = {key, previous, recovered_at} end
    end
    at = next_at
  end
  if not all_fast then verdict = nil end
  if verdict ~= 1 then
    for _, undo in ipairs(charged) do bytes[undo[1]], recoveries[undo[1]] = undo[2], undo[3] end
  end
  return verdict, at
end
