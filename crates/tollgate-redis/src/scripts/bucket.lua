-- Buckets whose sums stay far below 2^53.
--
-- A level counts parts of a token, of which a token has as many as its period has microseconds; the
-- rate is what flows in per microsecond. Stored are tokens at a whole millisecond, as people read it.
-- Form says how many decimals it takes to find the whole number of parts again.
--
-- A key expires at a whole second, the first or second one after the bucket is full. That follows
-- from what is stored, so a busy key is told no more than once a second.

-- The level now, the instant that is now for this key, and the second before which the bucket is full
-- as it is stored (nothing if all has to be written anew).
local function refill(key, period, rate, burst, text)
  local stored = try('HMGET', key, 'tokens', 'lastRefill', 'limit')
  local level, ms = tonumber(stored[1]), tonumber(stored[2])
  if stored[3] ~= text or not level or not ms or ms % 1 > 0 or ms * 1000 > now then
    return unusual(key, stored, period, rate, burst, text)
  end
  local full = burst * period
  level = floor(level * period + 0.5)
  local full_second = floor((ms + (full - level) / (rate * 1000)) / 1000)
  level = level + (now - ms * 1000) * rate
  if level > full then level = full end
  return level, now, full_second
end

-- Stores the level at that instant.
local function pour(key, level, time, full_second, period, rate, burst, text, form, ttl)
  local full, ms = burst * period, floor(time / 1000)
  local fraction, base = nil, level - (time - ms * 1000) * rate
  if base < 0 and level >= 0 then
    ms, base = ms + 1, base + 1000 * rate
    if base > full then
      ms, base = ms - 1, level
      fraction = format('%.0f.%03.0f', ms, time - ms * 1000)
    end
  end
  -- Numbers that are not made texts here would be written with all digits, which takes long.
  local tokens, shown = format(form, base / period), fraction or format('%.0f', ms)
  if full_second then
    call('HSET', key, 'tokens', tokens, 'lastRefill', shown)
  else
    call('HSET', key, 'tokens', tokens, 'lastRefill', shown, 'limit', text)
  end
  local second = floor((ms + (full - base) / (rate * 1000)) / 1000)
  if second == full_second and ttl == 0 then return end
  local ms_left = (second + 2) * 1000 - floor(now / 1000)
  call('PEXPIRE', key, format('%.0f', ms_left > ttl and ms_left or ttl))
end
