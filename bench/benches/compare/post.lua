-- Posts the body of the first argument with one of 100,000 keys in place of KEY.
local before, after

function init(args)
  before, after = args[1]:match("^(.-)KEY(.*)$")
end

function request()
  local key = string.format("user:%019d", math.random(0, 99999))
  local headers = { ["Content-Type"] = "application/json" }
  return wrk.format("POST", nil, headers, before .. key .. after)
end
