-- Asks Tollgate about each request. Belongs in /etc/haproxy/tollgate.lua.

local URL = "http://tollgate/v1/forward-auth/haproxy"
-- Where haproxy.cfg listens for this.
local DOOR = "abns@tollgate-<listen>"
local TIMEOUT_MS = 500

-- The client's headers that a rule reads, in small letters: { "x-api-key" }
local READ = {}

-- What the daemon is told, and nothing that the client wrote under other names.
local function asked(txn)
    local headers = {
        ["x-forwarded-method"] = { txn.sf:method() },
        -- A request for a host alone has an empty path, which means the root.
        ["x-forwarded-uri"] = { (txn.sf:pathq():gsub("^$", "/")) },
        ["x-forwarded-host"] = { txn.sf:req_hdr("host") },
        ["x-forwarded-for"] = { txn.sf:src() },
        -- If the daemon has tokens, the one that is HAProxy's:
        -- ["tollgate-token"] = { "TOKEN" },
    }
    local sent = txn.http:req_get_headers()
    for _, name in ipairs(READ) do
        if sent[name] then
            headers[name] = {}
            for index = 0, #sent[name] do table.insert(headers[name], sent[name][index]) end
        end
    end
    return headers
end

local function tollgate(txn)
    local answer = core.httpclient():get({
        url = URL, dst = DOOR, headers = asked(txn), timeout = TIMEOUT_MS,
    })
    local status = answer and answer.status or 0
    -- 5xx, or no answer, means that nothing was decided: haproxy.cfg says what then.
    if status < 200 or status >= 500 then return end
    -- HAProxy lacks the daemon's token: none passes, and no client could help it.
    if status == 401 or status == 403 then return txn:done(txn:reply({ status = 503 })) end

    local function header(name)
        local values = answer.headers[name]
        return values and values[0]
    end
    txn:set_var("txn.tollgate", "decided")
    for variable, name in pairs({ policy = "ratelimit-policy", limit = "ratelimit" }) do
        if header(name) then txn:set_var("txn.tollgate_" .. variable, header(name)) end
    end
    if status == 200 then return end

    local denial = txn:reply({ status = status, body = answer.body })
    for _, name in ipairs({ "Content-Type", "Cache-Control", "Retry-After" }) do
        local value = header(name:lower())
        if value then denial:add_header(name, value) end
    end
    txn:done(denial)
end

core.register_action("tollgate", { "http-req" }, tollgate, 0)
