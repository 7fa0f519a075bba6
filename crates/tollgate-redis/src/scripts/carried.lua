-- Levels of buckets that were stored under other numbers, or at an instant still to come.

-- A step back beyond this is a correction of the clock, and not a race between its readers.
local STEP = 1000000

-- Microseconds of a text in milliseconds, which are whole but for buckets that are full within one.
local function micros(text)
  local ms = tonumber(text)
  if not ms or ms % 1 == 0 then return ms and ms * 1000 end
  local whole, part = string.match(text, '^(%d+)%.(%d%d%d)$')
  return whole and whole * 1000 + part
end

-- What is left of a level whose instant is still to come, and the instant that is now for it. A
-- bucket that was almost empty is stored as it will be at the end of the millisecond; otherwise the
-- clock was set back.
local function set_back(rate, level, refilled)
  local ahead = refilled - now
  if ahead > STEP then return level, now end
  if refilled % 1000 > 0 or level < 0 or level >= 1000 * rate then return level, refilled end
  if ahead > 1000 then ahead = 1000 end
  level = level - ahead * rate
  if level < 0 then level = 0 end
  return level, refilled - ahead
end

-- How many tokens are left of what was stored under other numbers: as much is missing in proportion.
local function carried(key, stored, burst)
  local old_rate, old_period, old_burst = numbers(stored[3])
  local tokens, refilled = tonumber(stored[1]), micros(stored[2])
  if not old_burst or not tokens or not refilled then
    call('DEL', key)
    return burst
  end
  if old_rate == 0 or old_burst == 0 then return burst end
  local a, b = old_rate, old_period
  while b > 0 do a, b = b, a % b end
  old_rate, old_period = old_rate / a, old_period / a
  local level = floor(tokens * old_period + 0.5)
  if refilled > now then
    level = set_back(old_rate, level, refilled)
  else
    level = level + (now - refilled) * old_rate
  end
  local left = floor(level / old_period)
  if left > old_burst then left = old_burst end
  return burst - share(old_burst - left, old_burst, burst)
end
