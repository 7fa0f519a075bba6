-- Fixed windows of the clock.
--
-- What is taken beyond the count of a window belongs to those after it: `ahead` windows are full, and
-- `count` is in the one behind them.

-- Days before the first of a month, and months before a day, counted from January 1970. Years begin
-- in March here, because then the leap day ends them and months have a fixed rhythm.
local function days_before(months)
  local march = months + 23638
  local year, month = floor(march / 12), march % 12
  local era = floor(year / 400)
  local of_era = year - era * 400
  local days = of_era * 365 + floor(of_era / 4) - floor(of_era / 100) + floor((153 * month + 2) / 5)
  return era * 146097 + days - 719468
end

local function months_before(days)
  days = days + 719468
  local era = floor(days / 146097)
  local day = days - era * 146097
  local year = floor((day - floor(day / 1460) + floor(day / 36524) - floor(day / 146096)) / 365)
  local of_year = day - (365 * year + floor(year / 4) - floor(year / 100))
  return (era * 400 + year) * 12 + floor((5 * of_year + 2) / 153) - 23638
end

local DAY = 86400000000

local function window_of(limit, time)
  if limit.months > 0 then return floor(months_before(floor(time / DAY)) / limit.months) end
  if time < limit.offset then return 0 end
  return floor((time - limit.offset) / limit.length) + 1
end

local function window_start(limit, window)
  if limit.months > 0 then return days_before(window * limit.months) * DAY end
  local start = (window - 1) * limit.length + limit.offset
  return start > 0 and start or 0
end

-- Lets windows pass.
local function pass(state, limit, time)
  local window = window_of(limit, time)
  local passed = window - state.window
  if passed <= 0 then return end
  state.window = window
  if passed <= state.ahead then
    state.ahead = state.ahead - passed
  else
    state.ahead, state.count = 0, 0
  end
end

-- How many windows are full, and what is in the next, with `cost` more: whole in one window.
local function with(cell, cost)
  local ahead, count = cell.ahead, cell.count
  -- Not their sum: that might need more bits than there are.
  if count > cell.limit.count - cost then return ahead + 1, cost end
  return ahead, count + cost
end

local function fixed_idle(limit, window, ahead, count)
  return window_start(limit, window + ahead + (count > 0 and 1 or 0))
end

local function carry_fixed(cell, stored)
  local count, length, _, times, unit = numbers(stored[4])
  local start, taken = tonumber(stored[1]), tonumber(stored[2])
  if not count or not start or not taken then return call('DEL', cell.key) end
  local old = { count = count, months = 0, offset = 0, length = length }
  if unit == 'month' then old.months = times end
  if unit == 'year' then old.months = times * 12 end
  if unit == 'week' then old.offset = 345600000000 % old.length end
  local state = { ahead = tonumber(stored[3]) or 0, count = taken }
  state.window = window_of(old, start * 1000000)
  pass(state, old, now)
  local used = share(state.ahead * count + state.count, count, cell.limit.count)
  if used > 0 then
    cell.ahead = math.ceil(used / cell.limit.count) - 1
    cell.count = used - cell.ahead * cell.limit.count
  end
end

kinds.fixed_window = {
  read = function(limit)
    limit.count, limit.months, limit.length, limit.offset = number(), number(), number(), number()
  end,

  load = function(cell)
    local limit = cell.limit
    cell.window, cell.ahead, cell.count, cell.expires = window_of(limit, now), 0, 0, nil
    cell.time, cell.had_ahead = now, true
    if limit.count == 0 then return end
    local stored = try('HMGET', cell.key, 'window', 'count', 'ahead', 'limit')
    local start, count = tonumber(stored[1]), tonumber(stored[2])
    if stored[4] ~= limit.text or not start or not count then
      if stored.err or stored[1] or stored[4] then carry_fixed(cell, stored) end
      return
    end
    start = start * 1000000
    local window = window_of(limit, start)
    cell.ahead, cell.count = tonumber(stored[3]) or 0, count
    cell.had_ahead = stored[3]
    cell.expires = expiry(fixed_idle(limit, window, cell.ahead, count) / 1000)
    -- Back by little: the window that was is waited for. By more: what was taken counts now.
    if start > now and start - now > STEP then return end
    cell.window = window
    if start > now then cell.time = start end
    pass(cell, limit, cell.time)
  end,

  check = function(cell, cost, patience)
    local limit = cell.limit
    tell(window_start(limit, cell.window) / 1000000)
    tell(cell.ahead)
    tell(cell.count)
    if cost == 0 then cost = 1 end
    if cost > limit.count then return false end
    local ahead = with(cell, cost)
    if ahead == 0 then return true end
    return window_start(limit, cell.window + ahead) - cell.time <= patience
  end,

  spend = function(cell, cost)
    cell.ahead, cell.count = with(cell, cost)
  end,

  -- Up to the brim and no further: a penalty must not reach into the next window.
  charge = function(cell, cost)
    if cell.ahead > 0 then return end
    cell.count = cell.count + cost
    if cell.count > cell.limit.count then cell.count = cell.limit.count end
  end,

  refund = function(cell, cost)
    local limit = cell.limit.count
    local count = cell.count - cost
    if count <= 0 and cell.ahead > 0 then
      local windows = floor(-count / limit) + 1
      if windows > cell.ahead then windows = cell.ahead end
      cell.ahead, count = cell.ahead - windows, count + windows * limit
    end
    cell.count = count > 0 and count or 0
  end,

  left = function(cell)
    return cell.ahead > 0 and 0 or cell.limit.count - cell.count
  end,

  lower = function(cell, time, left)
    if window_of(cell.limit, time) ~= cell.window or cell.ahead > 0 then return end
    local count = cell.limit.count - left
    if cell.count < count then cell.count = count end
  end,

  -- A slice must not be spent in a window that it was not taken from.
  ends = function(cell)
    return window_start(cell.limit, cell.window + 1)
  end,

  save = function(cell)
    local limit, key = cell.limit, cell.key
    if cell.ahead == 0 and cell.count == 0 then return call('DEL', key) end
    local start = window_start(limit, cell.window) / 1000000
    call('HSET', key, 'window', start, 'count', cell.count, 'limit', limit.text)
    if cell.ahead > 0 then
      call('HSET', key, 'ahead', cell.ahead)
    elseif cell.had_ahead then
      call('HDEL', key, 'ahead')
    end
    local idle = expiry(fixed_idle(limit, cell.window, cell.ahead, cell.count) / 1000)
    if idle ~= cell.expires or limit.ttl > 0 then expire(key, idle, limit.ttl) end
  end,
}
