-- Decides the requests in order, then writes everything: an error before that changes nothing.
-- Rows: together/checks.rows

local decide, begin_general, write_records, write_hash, write_sorted_set

local function write_keys(is_general)
  for key, recovers_at in pairs(recoveries) do
    local name, to = KEYS[key], bytes[key]
    if foreign and foreign[key] then corrupt = corrupt + 1 end
    if not to then
      call('DEL', name)
    elseif is_general and hashed_logs[key] then
      write_hash(key, to, expiry(recovers_at))
    elseif is_general and many_leases[key] then
      write_sorted_set(key, to, expiry(recovers_at))
    else
      call('SET', name, to, expires, expiry(recovers_at))
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
    local operation, checks, place, key, cost, next_at = read('<BBHHI7', requests, at)
    local verdict
    if operation == 0 and checks > 1 then
      verdict, next_at = check_multiple(requests, at + 2, checks)
    elseif operation == 0 and cost > 0 then
      local policy = policies[place] or policy_at(place)
      if policy.fast_path > 0 then
        verdict = check_fast_path(policy, key, cost)
        -- The general path counts the denial.
        if verdict == 0 and policy.ban then verdict = nil end
      end
    end
    if verdict then
      at = next_at
    else
      if not is_general then
        if not decide then
          decide, begin_general, write_records, write_hash, write_sorted_set = general()
        end
        begin_general()
        is_general = true
      end
      verdict, at = decide(at)
    end
    -- The conversion of a number to text costs more than this.
    verdicts[request_index] = verdict == 1 and '1' or verdict == 0 and '0' or verdict
  end
  write_keys(is_general)
  reply[2] = table.concat(verdicts)
  reply[3] = format_text('%d', corrupt)
  return reply
end

return run
