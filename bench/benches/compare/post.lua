-- Posts the body of the first argument, with one of 100,000 keys in place of KEY if it has that word.
local body, before, after

function init(args)
  body = args[1]
  before, after = body:match("^(.-)KEY(.*)$")
end

function request()
  local headers = { ["Content-Type"] = "application/json" }
  if before then
    body = before .. string.format("user:%019d", math.random(0, 99999)) .. after
  end
  return wrk.format("POST", nil, headers, body)
end
