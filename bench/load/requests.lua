-- Sends the requests of a file, again and again. Each line is one request: METHOD <tab> path <tab> body <tab> "once".
-- Requests with "once" get an Idempotency-Key that no other request has.
-- Arguments: the file; a file with one API key a line, which the requests use in turn.
local requests = {}
local position = 0

-- Each request replaces this text by a number of the same length.
local NUMBER = "0000000000"
local sent = 0

local function lines(file)
  local all = {}
  for line in io.lines(file) do
    all[#all + 1] = line
  end
  return all
end

function init(args)
  local run = ""
  for byte in io.open("/dev/urandom", "rb"):read(8):gmatch(".") do
    run = run .. string.format("%02x", byte:byte())
  end
  local texts, keys = lines(args[1]), lines(args[2])
  for index = 1, math.max(#texts, #keys) do
    local method, path, body, once = texts[(index - 1) % #texts + 1]:match("^(%S+)\t(%S+)\t?([^\t]*)\t?(%S*)$")
    local headers = { ["Authorization"] = "Bearer " .. keys[(index - 1) % #keys + 1] }
    if body ~= "" then
      headers["Content-Type"] = "application/json"
    else
      body = nil
    end
    if once ~= "" then
      headers["Idempotency-Key"] = run .. "-" .. NUMBER
    end
    local text = wrk.format(method, path, headers, body)
    local first, last = text:find(run .. "-" .. NUMBER, 1, true)
    if first then
      requests[index] = { text:sub(1, last - #NUMBER), text:sub(last + 1) }
    else
      requests[index] = text
    end
  end
end

function request()
  position = position % #requests + 1
  local request = requests[position]
  if type(request) == "string" then
    return request
  end
  sent = sent + 1
  return request[1] .. string.format("%010d", sent) .. request[2]
end

function done(summary, latency)
  io.write(string.format('RESULT {"requests":%d,"durationUs":%d,"p50Us":%d,"p99Us":%d,"failures":%d}\n',
    summary.requests, summary.duration, latency:percentile(50), latency:percentile(99),
    summary.errors.status + summary.errors.connect + summary.errors.read + summary.errors.write + summary.errors.timeout))
end
