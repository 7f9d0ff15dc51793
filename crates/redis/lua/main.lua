-- The requests in order, then all writes: what fails before has changed nothing.
-- Rows: together/checks.rows

local requests, at, finish = ARGV[2], 1, #ARGV[2]
local decide, write_others
while at <= finish do
  asked = asked + 1
  local verb, checks, place, key, _, cost, next_at = read('<BBHHHI7', requests, at)
  local verdict
  if verb == 0 and checks > 1 then
    verdict, next_at = check_together(requests, at + 2, checks)
  elseif verb == 0 and cost > 0 then
    local policy = policies[place] or policy_at(place)
    if policy.plain > 0 then verdict = check_plain(policy, key, cost) end
  end
  if verdict then
    at = next_at
  else
    if not decide then decide, write_others = general() end
    verdict, at = decide(asked, at)
  end
  verdicts[asked] = verdict
end

-- A key that was none is set only if there is none: else it is of a foreign type, and counted.
for key = 1, checked do
  local recovers_at = recoveries[key]
  if recovers_at then
    local name, to = KEYS[key], bytes[key]
    if not to then
      call('DEL', name)
    elseif reply[key + 3] ~= '' then
      call('SET', name, to, expires, expiry(recovers_at))
    elseif not call('SET', name, to, expires, expiry(recovers_at), 'NX') then
      junk = junk + 1
      call('SET', name, to, expires, expiry(recovers_at))
    end
  end
end
if write_others then write_others() end

reply[2] = table.concat(verdicts)
reply[3] = string.format('%d', junk)
return reply
