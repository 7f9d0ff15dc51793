-- Checks each request with Tollgate. Copy to /etc/haproxy/tollgate.lua.

local URL = "http://tollgate/v1/forward-auth/haproxy"
-- The address of `listen tollgate` in haproxy.cfg.
local ADDRESS = "abns@tollgate-<listen>"
local TIMEOUT_MS = 500

-- The client's headers that a rule reads, in lower case: { "x-api-key" }
local READ = {}

-- The headers for the daemon; it gets no others of the client.
local function request_headers(txn)
    local headers = {
        ["x-forwarded-method"] = { txn.sf:method() },
        -- A request for a host without a path means the root.
        ["x-forwarded-uri"] = { (txn.sf:pathq():gsub("^$", "/")) },
        ["x-forwarded-host"] = { txn.sf:req_hdr("host") },
        ["x-forwarded-for"] = { txn.sf:src() },
        -- If the daemon has tokens, the token of HAProxy:
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
    local response = core.httpclient():get({
        url = URL, dst = ADDRESS, headers = request_headers(txn), timeout = TIMEOUT_MS,
    })
    local status = response and response.status or 0
    -- The daemon broke the connection, which a client could cause.
    if status == 502 then return txn:done(txn:reply({ status = 503 })) end
    -- 5xx or no response means that there is no decision; haproxy.cfg determines the result.
    if status < 200 or status >= 500 then return end
    -- The token of HAProxy is missing or unknown: reject all requests. The client cannot fix this.
    if status == 401 or status == 403 then return txn:done(txn:reply({ status = 503 })) end

    local function header(name)
        local values = response.headers[name]
        return values and values[0]
    end
    txn:set_var("txn.tollgate", "decided")
    for variable, name in pairs({ policy = "ratelimit-policy", limit = "ratelimit" }) do
        if header(name) then txn:set_var("txn.tollgate_" .. variable, header(name)) end
    end
    if status == 200 then return end

    local denial = txn:reply({ status = status, body = response.body })
    for _, name in ipairs({ "Content-Type", "Cache-Control", "Retry-After" }) do
        local value = header(name:lower())
        if value then denial:add_header(name, value) end
    end
    txn:done(denial)
end

core.register_action("tollgate", { "http-req" }, tollgate, 0)
