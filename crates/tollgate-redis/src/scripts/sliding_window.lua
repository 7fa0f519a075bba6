-- Strict sliding windows: 36 sub-windows and the newest, in one packed string.
--
-- Packed are the newest sub-window's number, its count, the time of the last write, the counts of
-- those before in steps (each at its number modulo 36), and the numbers of the limit behind them.

local PARTS = 36
local PACKED = '<ddd' .. string.rep('H', PARTS)
local PACKED_BYTES = 24 + 2 * PARTS

local function step_of(count)
  return count == 0 and 1 or math.ceil(count / 65535)
end

local function length_of(length)
  return math.ceil(length / PARTS)
end

local function steps(limit, count)
  local steps = math.ceil(count / limit.step)
  return steps < 65535 and steps or 65535
end

local function gone_at(limit, part)
  return (part + PARTS + 1) * limit.part
end

-- The instant that counts: behind the last place that was given away in the future, because what
-- happened long before that place is no longer kept.
local function counting(cell)
  local start = cell.newest * cell.limit.part
  return cell.time > start and cell.time or start
end

-- The first sub-window before the newest that still matters at an instant.
local function oldest(limit, cell, time)
  local first = floor(time / limit.part) - PARTS
  if first < cell.newest - PARTS then first = cell.newest - PARTS end
  return first > 0 and first or 0
end

-- How many steps past sub-windows count at an instant, and how much the newest does.
local function counted(limit, cell, time)
  local steps = 0
  for part = oldest(limit, cell, time), cell.newest - 1 do
    steps = steps + cell.past[part % PARTS]
  end
  local newest_counts = cell.newest >= floor(time / limit.part) - PARTS
  return steps, newest_counts and cell.count or 0
end

-- How much the limit has left at an instant; below zero if more is counted than there is. So much
-- more may be counted that it is not exact, but then it is far below zero.
local function rest_at(limit, cell, time)
  local steps, count = counted(limit, cell, time)
  return limit.count - steps * limit.step - count
end

-- The earliest instant at which so much more has room, and how much is taken now.
local function window_turn(cell, cost)
  local limit, time = cell.limit, counting(cell)
  local steps, count = counted(limit, cell, time)
  local gone, used = time, steps * limit.step + count
  local part = oldest(limit, cell, time)
  while limit.count - steps * limit.step - count < cost do
    gone = gone_at(limit, part)
    if part >= cell.newest then break end
    steps = steps - cell.past[part % PARTS]
    part = part + 1
  end
  return gone > time and gone or time, used
end

-- From when on nothing that was taken counts.
local function window_free(cell)
  local limit = cell.limit
  local first = oldest(limit, cell, cell.time)
  if cell.count > 0 and cell.newest >= floor(cell.time / limit.part) - PARTS then
    return gone_at(limit, cell.newest)
  end
  for part = cell.newest - 1, first, -1 do
    if cell.past[part % PARTS] > 0 then return gone_at(limit, part) end
  end
  return 0
end

local function no_past(cell)
  local past = {}
  for i = 0, PARTS - 1 do past[i] = 0 end
  cell.past = past
end

-- Makes the sub-window of an instant the newest, unless a later one is.
local function advance(cell, time)
  local limit = cell.limit
  local part = floor(time / limit.part)
  if part <= cell.newest then return end
  if part - cell.newest > PARTS then
    no_past(cell)
  else
    cell.past[cell.newest % PARTS] = steps(limit, cell.count)
    for empty = cell.newest + 1, part - 1 do cell.past[empty % PARTS] = 0 end
  end
  cell.newest, cell.count = part, 0
end

local function carry_window(cell, old_text)
  local count, period = numbers(old_text)
  if not count then
    call('DEL', cell.key)
    cell.newest, cell.count = 0, 0
    return no_past(cell)
  end
  local limit = cell.limit
  local length = length_of(period)
  local old = { count = count, step = step_of(count), part = length }
  if length ~= limit.part then
    local used = count - rest_at(old, cell, cell.time)
    cell.newest, cell.count = floor(cell.time / limit.part), share(used, count, limit.count)
    return no_past(cell)
  end
  local past = cell.past
  no_past(cell)
  for part = oldest(old, cell, cell.time), cell.newest - 1 do
    local used = share(past[part % PARTS] * old.step, count, limit.count)
    cell.past[part % PARTS] = steps(limit, used)
  end
  cell.count = share(cell.count, count, limit.count)
end

-- The clock was set back far: the sub-windows go with it.
local function shift_window(cell, time, part_length)
  local by = floor(time / part_length) - floor(now / part_length)
  local past = cell.past
  no_past(cell)
  for i = 0, PARTS - 1 do cell.past[(i - by) % PARTS] = past[i] end
  cell.newest = cell.newest - by
end

local function unpacked(cell, packed)
  local values = { struct.unpack(PACKED, packed) }
  cell.newest, cell.count = values[1], values[2]
  for i = 0, PARTS - 1 do cell.past[i] = values[4 + i] end
  local old_text = string.sub(packed, PACKED_BYTES + 1)
  local part_length = cell.limit.part
  if old_text ~= cell.limit.text then
    local _, period = numbers(old_text)
    if period then part_length = length_of(period) end
  end
  local time = values[3]
  if time > now + STEP then
    shift_window(cell, time, part_length)
  elseif time > now then
    cell.time = time
  end
  if old_text ~= cell.limit.text then carry_window(cell, old_text) end
end

kinds.sliding_window = {
  read = function(limit)
    limit.count = number()
    limit.part, limit.step = length_of(number()), step_of(limit.count)
  end,

  load = function(cell)
    cell.newest, cell.count, cell.time = 0, 0, now
    no_past(cell)
    local packed = try('GET', cell.key)
    if not packed then return end
    if type(packed) ~= 'string' or #packed < PACKED_BYTES then return call('DEL', cell.key) end
    unpacked(cell, packed)
  end,

  check = function(cell, cost, patience)
    local limit = cell.limit
    if cost == 0 then cost = 1 end
    local passes, when, used = cost <= limit.count, cell.time, nil
    if passes then
      when, used = window_turn(cell, cost)
    else
      used = limit.count - rest_at(limit, cell, counting(cell))
    end
    tell(cell.time)
    tell(used)
    tell(when)
    tell(window_free(cell))
    return passes and when - cell.time <= (patience > 0 and patience or 0)
  end,

  spend = function(cell, cost)
    advance(cell, (window_turn(cell, cost)))
    cell.count = cell.count + cost
  end,

  charge = function(cell, cost)
    advance(cell, cell.time)
    local count = cell.count + cost
    if count > cell.limit.count then count = cell.limit.count end
    if count > cell.count then cell.count = count end
  end,

  -- Of past sub-windows whole steps only: less than a step given back stays taken.
  refund = function(cell, cost)
    advance(cell, cell.time)
    local from_newest = cost < cell.count and cost or cell.count
    cell.count, cost = cell.count - from_newest, cost - from_newest
    local step, past = cell.limit.step, cell.past
    local first = cell.newest > PARTS and cell.newest - PARTS or 0
    for part = cell.newest - 1, first, -1 do
      local returned = floor(cost / step)
      if returned > past[part % PARTS] then returned = past[part % PARTS] end
      past[part % PARTS] = past[part % PARTS] - returned
      cost = cost - returned * step
    end
  end,

  left = function(cell)
    local left = rest_at(cell.limit, cell, counting(cell))
    return left > 0 and left or 0
  end,

  lower = function(cell, time, left)
    local limit, part = cell.limit, floor(time / cell.limit.part)
    if gone_at(limit, part) <= cell.time then return end
    local missing = rest_at(limit, cell, counting(cell)) - left
    if missing <= 0 then return end
    if part >= cell.newest then
      advance(cell, time < cell.time and time or cell.time)
      cell.count = cell.count + missing
    elseif part >= cell.newest - PARTS then
      local past = cell.past[part % PARTS] + steps(limit, missing)
      cell.past[part % PARTS] = past < 65535 and past or 65535
    end
  end,

  save = function(cell)
    local limit = cell.limit
    -- A place in the future that was given back still stands: what was before it is forgotten.
    if window_free(cell) == 0 and cell.newest * limit.part <= cell.time then
      return call('DEL', cell.key)
    end
    local packed = struct.pack(PACKED, cell.newest, cell.count, cell.time, unpack(cell.past, 0, PARTS - 1))
    call('SET', cell.key, packed .. limit.text)
    expire(cell.key, expiry(gone_at(limit, cell.newest) / 1000), limit.ttl)
  end,
}
