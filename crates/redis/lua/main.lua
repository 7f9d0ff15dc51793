-- Decides the requests in order, then writes everything: an error before that changes nothing.
-- Rows: together/checks.rows

local ACQUIRE, RELEASE = 10, 12
local decide, begin_general, write_records, write_sorted_set

local function write_keys(is_general)
  for key = 1, checked do
    local recovers_at = recoveries[key]
    if recovers_at then
      local name, to = KEYS[key], bytes[key]
      recoveries[key] = nil
      if foreign and foreign[key] then corrupt = corrupt + 1 end
      if not to then
        call('DEL', name)
      elseif hashed_logs[key] then
        write_hash(key, to, expiry(recovers_at))
      elseif is_general and many_leases[key] then
        write_sorted_set(key, to, expiry(recovers_at))
      else
        call('SET', name, to, expires, expiry(recovers_at))
      end
    end
  end
  if is_general then write_records() end
end

local function run(keys, arguments)
  begin(keys, arguments)
  local requests, at, is_general = ARGV[2], 1, false
  local finish = #requests
  while at <= finish do
    request_index = request_index + 1
    -- The operation, the number of checks, and the first check: the indices of its policy and key, and its
    -- cost. struct.unpack takes three times as long.
    local operation, checks, p1, p2, k1, k2, a, b, c, d, e, f, g = byte(requests, at, at + 12)
    local verdict, next_at
    if operation == 0 and checks > 1 then
      verdict, next_at = check_multiple(requests, at + 2, checks)
    elseif checks == 1 and (operation == 0 or operation == ACQUIRE or operation == RELEASE) then
      local arg, key = ARGV[p1 + 256 * p2 + 3], k1 + 256 * k2
      local cost = a + 256 * (b + 256 * (c + 256 * (d + 256 * (e + 256 * (f + 256 * g)))))
      local policy = parsed[arg] or new_policy(arg)
      next_at = at + 13
      if operation == 0 then
        if policy.check and cost > 0 then verdict = policy.check(policy, key, cost) end
      elseif policy.has_leases then
        local id = requests:sub(next_at, next_at + 15)
        next_at = next_at + 16
        if operation == RELEASE then
          verdict = release(policy, key, id)
        elseif cost > 0 then
          verdict = acquire(policy, key, cost, id)
        end
      end
      -- The general path counts the denial.
      if verdict == 0 and policy.ban then verdict = nil end
    end
    if verdict then
      at = next_at
    else
      if not is_general then
        if not decide then
          decide, begin_general, write_records, write_sorted_set = general()
        end
        begin_general()
        is_general = true
      end
      verdict, at = decide(at)
    end
    -- The conversion of a number to text would cost more.
    verdicts[request_index] = verdict == 1 and '1' or verdict == 0 and '0' or verdict
  end
  write_keys(is_general)
  reply[2], reply[3] = concat(verdicts, '', 1, request_index), corrupt
  return reply
end

return run
