-- What every script stands on.

local call, try, floor = redis.call, redis.pcall, math.floor

-- A step back beyond this is a correction of the clock, and not a race between its readers.
local STEP = 1000000

-- When a key expires (ms) whose state is idle from idle_ms on: 1 to 2 s later. Whole seconds, so that
-- a busy key need not be told at each write; and from the state alone, so that a script knows what
-- was told last time.
local function expiry(idle_ms)
  return (floor(idle_ms / 1000) + 2) * 1000
end

-- Redis adds the time to it, and what overflows then is an error: some 30,000 years are enough.
local function expire(key, at_ms, ttl_ms)
  local ms = at_ms - floor(now / 1000)
  if ms < ttl_ms then ms = ttl_ms end
  if ms > 1e15 then ms = 1e15 end
  call('PEXPIRE', key, ms)
end

-- a * b / m as quotient and remainder, exact for whole numbers up to 2^53 and quotients up to that.
local function muldiv(a, b, m)
  local product = a * b
  if product < 9007199254740992 then
    local quotient = floor(product / m)
    return quotient, product - quotient * m
  end
  local whole, rest = floor(b / m), b % m
  local quotient, remainder, bit = 0, 0, 9007199254740992
  while bit >= 1 do
    quotient = quotient * 2
    -- Compared before it is added up: a sum might need one bit more than there are.
    if remainder >= m - remainder then
      quotient, remainder = quotient + 1, remainder - (m - remainder)
    else
      remainder = remainder * 2
    end
    if a >= bit then
      a = a - bit
      quotient = quotient + whole
      if remainder >= m - rest then
        quotient, remainder = quotient + 1, remainder - (m - rest)
      else
        remainder = remainder + rest
      end
    end
    bit = bit / 2
  end
  return quotient, remainder
end

-- used of old as the same share of new, rounded up.
local function share(used, old, new)
  if old == 0 then return 0 end
  local quotient, remainder = muldiv(used, new, old)
  if remainder > 0 then quotient = quotient + 1 end
  return quotient
end

-- The numbers in a text like '10/s 15' or '5/30min': count, times, unit, burst.
local function numbers(text)
  local count, times, unit, burst = string.match(text or '', '^(%d+)/(%d*)(%a+) ?(%d*)$')
  if not count then return end
  return tonumber(count), tonumber(times) or 1, unit, tonumber(burst)
end

local SECONDS = { s = 1, min = 60, h = 3600, day = 86400, week = 604800, month = 2592000, year = 31536000 }
