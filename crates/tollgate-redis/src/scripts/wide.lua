-- Buckets whose sums do not fit 2^53: as in bucket.lua, with a level in two numbers, whole tokens and
-- the rest in parts of a token (of which a token has as many as its period has microseconds).

-- Sixteen digits tell apart parts of the longest period.
local function decimal(limit, whole, rest)
  if limit.small then
    local level = whole * limit.period + rest
    local tokens = level / limit.period
    if level < 5e12 and level > -5e12 then return tokens .. '' end
    return string.format('%.17g', tokens)
  end
  local sign = ''
  if whole < 0 then
    sign, whole = '-', -whole
    if rest > 0 then whole, rest = whole - 1, limit.period - rest end
  end
  local high, low
  high, rest = muldiv(rest, 100000000, limit.period)
  low = muldiv(rest, 100000000, limit.period)
  local digits = string.format('%s%.0f.%08.0f%08.0f', sign, whole, high, low)
  return (string.gsub(digits, '%.?0+$', '', 1))
end

-- The smallest rest whose decimal fraction begins with these sixteen digits.
local function parsed(limit, tokens)
  if limit.small then
    local level = tonumber(tokens)
    if not level then return end
    level = floor(level * limit.period + 0.5)
    local whole = floor(level / limit.period)
    return whole, level - whole * limit.period
  end
  local sign, whole, digits = string.match(tokens or '', '^(-?)(%d+)%.?(%d*)$')
  if not whole then return end
  digits = string.sub(digits .. '0000000000000000', 1, 16)
  local period = limit.period
  local high, high_rest = muldiv(tonumber(string.sub(digits, 1, 8)), period, 100000000)
  local low, low_rest = muldiv(tonumber(string.sub(digits, 9, 16)), period, 100000000)
  if low_rest > 0 then low = low + 1 end
  local rest = high + math.ceil((high_rest + low) / 100000000)
  whole = tonumber(whole)
  if sign == '-' then
    whole = -whole
    if rest > 0 then whole, rest = whole - 1, period - rest end
  end
  return whole, rest
end

-- The level after so many microseconds more.
local function flown(limit, whole, rest, micros)
  local more, parts = muldiv(micros, limit.rate, limit.period)
  if more >= 9007199254740992 and whole < 0 then
    -- What is owed is paid first: there are no numbers for so much at once.
    local half = floor(micros / 2)
    whole, rest = flown(limit, whole, rest, half)
    return flown(limit, whole, rest, micros - half)
  end
  if rest >= limit.period - parts then return whole + more + 1, rest - (limit.period - parts) end
  return whole + more, rest + parts
end

-- The level so many microseconds before.
local function ebbed(limit, whole, rest, micros)
  local less, parts = muldiv(micros, limit.rate, limit.period)
  if parts > rest then less, rest = less + 1, rest + limit.period end
  return whole - less, rest - parts
end

-- As in bucket.lua.
local function wide_set_back(limit, cell, refilled)
  local ahead = refilled - now
  if ahead > STEP then return end
  cell.time = refilled
  local most = flown(limit, 0, 0, 1000)
  if refilled % 1000 > 0 or cell.whole < 0 or cell.whole > most then return end
  if ahead > 1000 then ahead = 1000 end
  cell.whole, cell.rest = ebbed(limit, cell.whole, cell.rest, ahead)
  if cell.whole < 0 then cell.whole, cell.rest = 0, 0 end
  cell.time = refilled - ahead
end

kinds.wide = {
  read = function(limit)
    limit.period, limit.rate, limit.burst, limit.queue = number(), number(), number(), number()
    limit.small = number() == 1
  end,

  load = function(cell)
    local limit = cell.limit
    cell.whole, cell.rest, cell.time = limit.burst, 0, now
    local stored = try('HMGET', cell.key, 'tokens', 'lastRefill', 'limit')
    local whole, rest = parsed(limit, stored[1])
    local refilled = micros(stored[2])
    if stored[3] ~= limit.text or not whole or not refilled then
      if stored.err or stored[1] or stored[3] then
        cell.whole = carried(cell.key, stored, limit.burst)
      end
      return
    end
    if refilled > now then
      cell.whole, cell.rest = whole, rest
      wide_set_back(limit, cell, refilled)
    else
      cell.whole, cell.rest = flown(limit, whole, rest, now - refilled)
    end
    if cell.whole >= limit.burst then cell.whole, cell.rest = limit.burst, 0 end
  end,

  check = function(cell, cost, patience)
    local limit = cell.limit
    tell(cell.whole)
    tell(cell.rest)
    if cost == 0 then cost = 1 end
    if cost > limit.burst then return false end
    if patience < 0 then return cell.whole >= cost end
    local later = flown(limit, cell.whole, cell.rest, patience)
    if limit.queue == 1 then return cell.whole >= cost and later >= limit.burst end
    return later >= cost
  end,

  spend = function(cell, cost)
    cell.whole = cell.whole - cost
  end,

  charge = function(cell, cost)
    if cell.whole < 0 then return end
    cell.whole = cell.whole - cost
    if cell.whole < 0 then cell.whole, cell.rest = 0, 0 end
  end,

  refund = function(cell, cost)
    cell.whole = cell.whole + cost
    if cell.whole >= cell.limit.burst then cell.whole, cell.rest = cell.limit.burst, 0 end
  end,

  left = function(cell)
    return cell.whole > 0 and cell.whole or 0
  end,

  lower = function(cell, time, left)
    local elapsed = now - time
    if elapsed < 0 then elapsed = 0 end
    local whole, rest = flown(cell.limit, left, 0, elapsed)
    if cell.whole > whole or (cell.whole == whole and cell.rest > rest) then
      cell.whole, cell.rest = whole, rest
    end
  end,

  save = function(cell)
    local limit, whole, rest = cell.limit, cell.whole, cell.rest
    if whole >= limit.burst then return call('DEL', cell.key) end
    local ms = floor(cell.time / 1000)
    local shown = string.format('%.0f', ms)
    local base, parts = ebbed(limit, whole, rest, cell.time - ms * 1000)
    if base < 0 and whole >= 0 then
      base, parts = flown(limit, base, parts, 1000)
      ms = ms + 1
      shown = string.format('%.0f', ms)
      if base > limit.burst or (base == limit.burst and parts > 0) then
        base, parts, ms = whole, rest, ms - 1
        shown = string.format('%.0f.%03.0f', ms, cell.time - ms * 1000)
      end
    end
    local tokens = decimal(limit, base, parts)
    call('HSET', cell.key, 'tokens', tokens, 'lastRefill', shown, 'limit', limit.text)
    -- No exact number here, so one a little too large.
    local missing = limit.burst - base - parts / limit.period
    local missing_ms = missing * (limit.period / limit.rate) / 1000
    expire(cell.key, expiry(ms + missing_ms * 1.000000001), limit.ttl)
  end,
}
