-- The sliding window log as it stands in countless gateways: a sorted set of what passed.
local key = KEYS[1]
local limit = tonumber(ARGV[1])
local window_ms = tonumber(ARGV[2])
local now = tonumber(ARGV[3])
local member = ARGV[4]

redis.call('ZREMRANGEBYSCORE', key, 0, now - window_ms)
local count = redis.call('ZCARD', key)
if count >= limit then
  return { 0, 0 }
end
redis.call('ZADD', key, now, member)
redis.call('EXPIRE', key, 120)
return { 1, limit - count - 1 }
