-- Sliding counters: this window's count and the share of the last one's that still overlaps.

local function overlap(limit, previous, into)
  if previous == 0 then return 0 end
  return (muldiv(previous, limit.length - into, limit.length))
end

-- How far the estimate at an instant, with `cost` more, is below the limit; the instant is no earlier
-- than the window. Differences, because a sum might need more bits than there are.
local function below(limit, state, cost, time)
  local later = floor(time / limit.length)
  local into = time - later * limit.length
  if later <= state.window then
    return limit.count - state.current - cost - overlap(limit, state.previous, into)
  end
  if later > state.window + 1 then return limit.count end
  local left = limit.length - into
  local of_current, rest = muldiv(state.current, left, limit.length)
  local of_cost, cost_rest = muldiv(cost, left, limit.length)
  if rest >= limit.length - cost_rest then of_cost = of_cost + 1 end
  return limit.count - of_current - of_cost
end

local function roll(state, limit, time)
  local window = floor(time / limit.length)
  if window <= state.window then return end
  state.previous = window == state.window + 1 and state.current or 0
  state.current, state.window = 0, window
end

local function carry_counter(cell, stored)
  local count, length = numbers(stored[4])
  local start, current = tonumber(stored[1]), tonumber(stored[2])
  if not count or not start or not current then return call('DEL', cell.key) end
  local old = { count = count, length = length }
  local state = { current = current, previous = tonumber(stored[3]) or 0 }
  state.window = floor(start * 1000000 / old.length)
  roll(state, old, now)
  if old.length == cell.limit.length then
    cell.current = share(state.current, count, cell.limit.count)
    cell.previous = share(state.previous, count, cell.limit.count)
  else
    local used = count - below(old, state, 0, now)
    cell.current = share(used, count, cell.limit.count)
  end
end

local function counter_idle(limit, window, current, previous)
  return (window + (current > 0 and 2 or previous > 0 and 1 or 0)) * limit.length
end

local function counter_left(cell)
  local left = below(cell.limit, cell, 0, cell.time)
  return left > 0 and left or 0
end

kinds.sliding_counter = {
  read = function(limit)
    limit.count, limit.length = number(), number()
  end,

  load = function(cell)
    local limit = cell.limit
    cell.window, cell.current, cell.previous = floor(now / limit.length), 0, 0
    cell.time, cell.expires = now, nil
    local stored = try('HMGET', cell.key, 'window', 'current', 'previous', 'limit')
    local start, current = tonumber(stored[1]), tonumber(stored[2])
    local previous = tonumber(stored[3])
    if stored[4] ~= limit.text or not start or not current or not previous then
      if stored.err or stored[1] or stored[4] then carry_counter(cell, stored) end
      return
    end
    start = start * 1000000
    local window = floor(start / limit.length)
    cell.current, cell.previous = current, previous
    cell.expires = expiry(counter_idle(limit, window, current, previous) / 1000)
    if start > now and start - now > STEP then return end
    cell.window = window
    if start > now then cell.time = start end
    roll(cell, limit, cell.time)
  end,

  check = function(cell, cost, patience)
    local limit = cell.limit
    tell(cell.window * limit.length / 1000000)
    tell(cell.current)
    tell(cell.previous)
    if cost == 0 then cost = 1 end
    if cost > limit.count then return false end
    if cost <= counter_left(cell) then return true end
    if patience < 0 then return false end
    -- Taken now and waited off: whether the estimate has come down in time.
    return below(limit, cell, cost, cell.time + patience) >= 0
  end,

  spend = function(cell, cost)
    cell.current = cell.current + cost
    if cell.current > 9007199254740992 then cell.current = 9007199254740992 end
  end,

  charge = function(cell, cost)
    local current = cell.current + cost
    if current > cell.limit.count then current = cell.limit.count end
    if current > cell.current then cell.current = current end
  end,

  refund = function(cell, cost)
    local from_current = cost < cell.current and cost or cell.current
    cell.current = cell.current - from_current
    local previous = cell.previous - (cost - from_current)
    cell.previous = previous > 0 and previous or 0
  end,

  left = counter_left,

  lower = function(cell, time, left)
    local limit = cell.limit
    local window = floor(time / limit.length)
    if window == cell.window - 1 then
      if cell.previous < limit.count - left then cell.previous = limit.count - left end
    elseif window == cell.window then
      local missing = below(limit, cell, 0, cell.time) - left
      if missing > 0 then cell.current = cell.current + missing end
    end
  end,

  save = function(cell)
    local limit, key = cell.limit, cell.key
    if cell.current == 0 and cell.previous == 0 then return call('DEL', key) end
    call('HSET', key, 'window', cell.window * limit.length / 1000000, 'current', cell.current,
      'previous', cell.previous, 'limit', limit.text)
    local idle = expiry(counter_idle(limit, cell.window, cell.current, cell.previous) / 1000)
    if idle ~= cell.expires or limit.ttl > 0 then expire(key, idle, limit.ttl) end
  end,
}
