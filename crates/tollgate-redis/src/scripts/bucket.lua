-- Buckets whose sums stay far below 2^53.
--
-- A level counts parts of a token, of which a token has as many as its period has microseconds; the
-- rate is what flows in per microsecond. Stored are tokens at a whole millisecond, as people read it.
-- The decimal fraction is exact enough to find the whole number of parts again.

-- Microseconds of a text in milliseconds, which are whole but for buckets that are full within one.
local function micros(text)
  local ms = tonumber(text)
  if not ms or ms % 1 == 0 then return ms and ms * 1000 end
  local whole, part = string.match(text, '^(%d+)%.(%d%d%d)$')
  return whole and whole * 1000 + part
end

-- What is left of a level whose instant is still to come. A bucket that was almost empty is stored
-- as it will be at the end of the millisecond; otherwise the clock was set back.
local function set_back(limit, level, refilled)
  local ahead = refilled - now
  if ahead > STEP then return level, now end
  if refilled % 1000 > 0 or level < 0 or level >= 1000 * limit.rate then return level, refilled end
  if ahead > 1000 then ahead = 1000 end
  level = level - ahead * limit.rate
  if level < 0 then level = 0 end
  return level, refilled - ahead
end

-- How many tokens are left of what was stored under other numbers: as much is missing in proportion.
local function carried(key, limit, stored)
  local count, times, unit, burst = numbers(stored[3])
  local tokens, refilled = tonumber(stored[1]), micros(stored[2])
  if not burst or not tokens or not refilled then
    call('DEL', key)
    return limit.burst
  end
  if count == 0 or burst == 0 then return limit.burst end
  local period = times * SECONDS[unit] * 1000000
  local a, b = count, period
  while b > 0 do a, b = b, a % b end
  count, period = count / a, period / a
  local level = floor(tokens * period + 0.5)
  if refilled > now then
    level = set_back({ rate = count }, level, refilled)
  else
    level = level + (now - refilled) * count
  end
  local left = floor(level / period)
  if left > burst then left = burst end
  return limit.burst - share(burst - left, burst, limit.burst)
end

-- The level now, the instant that is now for this key, and when the key expires as things are.
local function refill(key, limit)
  local full = limit.full
  local stored = try('HMGET', key, 'tokens', 'lastRefill', 'limit')
  if stored[3] ~= limit.text then
    if not stored.err and not stored[1] and not stored[3] then return full, now end
    return carried(key, limit, stored) * limit.period, now
  end
  local tokens, refilled = tonumber(stored[1]), micros(stored[2])
  if not tokens or not refilled then return carried(key, limit, stored) * limit.period, now end
  local level = floor(tokens * limit.period + 0.5)
  local expires = expiry(floor(refilled / 1000) + (full - level) / limit.rate_ms)
  if refilled > now then
    level, refilled = set_back(limit, level, refilled)
    if level > full then level = full end
    return level, refilled, expires
  end
  level = level + (now - refilled) * limit.rate
  if level > full then level = full end
  return level, now, expires
end

-- Stores the level at that instant.
local function pour(key, limit, level, time, expires)
  local ms = floor(time / 1000)
  local into = (time - ms * 1000) * limit.rate
  local base, shown = level - into, ms
  if base < 0 and level >= 0 then
    base, ms = base + limit.rate_ms, ms + 1
    shown = ms
    if base > limit.full then
      base, ms = level, ms - 1
      shown = string.format('%.0f.%03.0f', ms, time - ms * 1000)
    end
  end
  local tokens = base / limit.period
  -- Fourteen digits are what a script writes of a number by itself.
  if base < 5e12 and base > -5e12 then tokens = tokens .. '' end
  if expires then
    call('HSET', key, 'tokens', tokens, 'lastRefill', shown)
  else
    call('HSET', key, 'tokens', tokens, 'lastRefill', shown, 'limit', limit.text)
  end
  local idle = expiry(ms + (limit.full - base) / limit.rate_ms)
  if idle ~= expires or limit.ttl > 0 then expire(key, idle, limit.ttl) end
end
