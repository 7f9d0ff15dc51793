-- The globals of scripts, and the function that runs one.

local pack, unpack, size, text_of_error, describe_error = ...

struct = {pack = pack, unpack = unpack, size = size}
redis = {}
print, dofile, loadfile = nil, nil, nil

-- As in Redis, an error that is a table becomes its message.
local function caught(is_ok, first, ...)
  if is_ok then return true, first, ... end
  return false, text_of_error(first)
end

local protected_call = pcall
function pcall(...)
  return caught(protected_call(...))
end

local function reject_write()
  error('Attempt to modify a readonly table', 2)
end

local function reject_read(_, name)
  error("Script attempted to access nonexistent global variable '" .. tostring(name) .. "'", 2)
end

local globals = setmetatable(_G, {__index = reject_read})
local environment = setmetatable({}, {__index = globals, __newindex = reject_write})

-- `execute` returns the reply to a command; `try` also returns errors, in place of raising them.
local function run(script, execute, try, keys, arguments)
  redis.call, redis.pcall = execute, try
  rawset(globals, 'KEYS', keys)
  rawset(globals, 'ARGV', arguments)
  return xpcall(script, describe_error)
end

return environment, run
