local call, floor = redis.call, math.floor
local limits = ARGV[1] * 4
local answer = { now }
for at = limits + 2, #ARGV, 3 do
  local key, limit, cost = KEYS[tonumber(ARGV[at])], ARGV[at + 1] * 4 - 2, tonumber(ARGV[at + 2])
  local period, rate = tonumber(ARGV[limit]), tonumber(ARGV[limit + 1])
  local burst, keep_ms = tonumber(ARGV[limit + 2]), tonumber(ARGV[limit + 3])
  local full = burst * period
  local stored = call('HMGET', key, 'tokens', 'lastRefill')
  local level = full
  if stored[2] then
    level = floor(stored[1] * period + 0.5) + (now - stored[2] * 1000) * rate
    if level > full then level = full end
  end
  answer[#answer + 1] = level
  local after = level - cost * period
  if cost > 0 and rate > 0 and after >= 0 then
    local ms = floor(now / 1000)
    call('HSET', key, 'tokens', (after - (now - ms * 1000) * rate) / period, 'lastRefill', ms)
    call('PEXPIRE', key, keep_ms)
  end
end
return answer
