-- Arithmetic that few decisions need.

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

-- The numbers in a text like '10/s 15' or '5/30min': count, microseconds, burst, times, unit. A burst
-- that is not written is the count.
local function numbers(text)
  local count, times, unit, burst = string.match(text or '', '^(%d+)/(%d*)(%a+) ?(%d*)$')
  if not count then return end
  local seconds = {
    s = 1, min = 60, h = 3600, day = 86400, week = 604800, month = 2592000, year = 31536000,
  }
  times = tonumber(times) or 1
  return tonumber(count), times * seconds[unit] * 1000000, tonumber(burst) or tonumber(count), times, unit
end
