-- The globals of scripts, and the functions that run a script, call a function and load a library.
--
-- `execute` returns the reply to a command; `try` also returns errors, in place of raising them.

local pack, unpack, size, text_of_error, describe_error, execute, try = ...

struct = {pack = pack, unpack = unpack, size = size}
redis = {call = execute, pcall = try}
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

local function run(script, keys, arguments)
  rawset(globals, 'KEYS', keys)
  rawset(globals, 'ARGV', arguments)
  return xpcall(script, describe_error)
end

local function call(callback, keys, arguments)
  return xpcall(function() return callback(keys, arguments) end, describe_error)
end

-- Returns the function that a library registers under its name.
local function load(library, name)
  local registered
  function redis.register_function(function_name, callback)
    if function_name ~= name then error('the simulator supports one function with the name of its library') end
    registered = callback
  end
  library()
  redis.register_function = nil
  return registered
end

return environment, run, call, load
