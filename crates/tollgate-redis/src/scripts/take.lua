-- Takes of one limit each, from buckets, at once or not at all: what most programs ask most.
--
-- Requests come ordered by limit and key, so that each key is read once and written once. Answered
-- are the time and, for each request, the level that it met.

local answer, size, key, at, last = { now }, 1, 0, 0, #ARGV
while at < last do
  local period, rate, burst = tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3])
  local text, form, ttl, keys = ARGV[at + 4], ARGV[at + 5], tonumber(ARGV[at + 6]), key + ARGV[at + 7]
  at = at + 7
  while key < keys do
    key = key + 1
    local name = KEYS[key]
    local level, time, full_second = refill(name, period, rate, burst, text)
    local before = level
    at = at + 1
    -- A cost, or how many of them follow, below zero.
    local cost, more = tonumber(ARGV[at]), 0
    if cost < 0 then
      more, at = -cost - 1, at + 1
      cost = tonumber(ARGV[at])
    end
    while true do
      size = size + 1
      answer[size] = level
      cost = cost * period
      if level >= cost then level = level - cost end
      if more == 0 then break end
      more, at = more - 1, at + 1
      cost = tonumber(ARGV[at])
    end
    if level ~= before then
      pour(name, level, time, full_second, period, rate, burst, text, form, ttl)
    end
  end
end
return answer
