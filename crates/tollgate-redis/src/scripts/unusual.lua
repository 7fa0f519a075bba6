-- The level and the instant of a bucket of which not all is as usual: stored as something else, under
-- other numbers, at a fraction of a millisecond, or at an instant still to come.
local function unusual(key, stored, period, rate, burst, text)
  if not stored.err and not stored[1] and not stored[3] then return burst * period, now end
  --cold--
  local tokens, refilled = tonumber(stored[1]), micros(stored[2])
  if stored[3] ~= text or not tokens or not refilled then
    return carried(key, stored, burst) * period, now
  end
  local level, time = floor(tokens * period + 0.5), now
  if refilled > now then
    level, time = set_back(rate, level, refilled)
  else
    level = level + (now - refilled) * rate
  end
  if level > burst * period then level = burst * period end
  return level, time
end
