-- Takes of one limit each, from buckets, at once or not at all: what most programs ask most.
--
-- Requests come ordered by limit and key, so that each key is read once and written once. Answered
-- are the time and, for each request, the level that it met. All numbers of a limit are packed into
-- one argument, because each argument costs more than reading a number out of it.

local read = struct.unpack
local answer, size, key = { now }, 1, 0
for limit = 1, #ARGV, 3 do
  local text, form, packed = ARGV[limit], ARGV[limit + 1], ARGV[limit + 2]
  local period, rate, burst, ttl, keys, at = read('<ddddd', packed)
  keys = key + keys
  while key < keys do
    key = key + 1
    local name = KEYS[key]
    local level, time, full_second = refill(name, period, rate, burst, text)
    local before, more, cost = level, 0, nil
    -- A cost, or how many of them follow, below zero.
    cost, at = read('<d', packed, at)
    if cost < 0 then
      more = -cost - 1
      cost, at = read('<d', packed, at)
    end
    while true do
      size = size + 1
      answer[size] = level
      cost = cost * period
      if level >= cost then level = level - cost end
      if more == 0 then break end
      more = more - 1
      cost, at = read('<d', packed, at)
    end
    if level ~= before then
      pour(name, level, time, full_second, period, rate, burst, text, form, ttl)
    end
  end
end
return answer
