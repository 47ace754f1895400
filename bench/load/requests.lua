-- Sends the requests of a file, one a line: METHOD <tab> path <tab> body. The file is walked round and round.
-- Arguments: the file, the API key.
local requests = {}
local position = 0

function init(args)
  local headers = { ["Authorization"] = "Bearer " .. args[2] }
  for line in io.lines(args[1]) do
    local method, path, body = line:match("^(%S+)\t(%S+)\t?(.*)$")
    if body ~= "" then
      headers["Content-Type"] = "application/json"
      requests[#requests + 1] = wrk.format(method, path, headers, body)
    else
      requests[#requests + 1] = wrk.format(method, path, headers)
    end
  end
end

function request()
  position = position % #requests + 1
  return requests[position]
end

function done(summary, latency)
  io.write(string.format('RESULT {"requests":%d,"durationUs":%d,"p50Us":%d,"p99Us":%d,"failures":%d}\n',
    summary.requests, summary.duration, latency:percentile(50), latency:percentile(99),
    summary.errors.status + summary.errors.connect + summary.errors.read + summary.errors.write + summary.errors.timeout))
end
