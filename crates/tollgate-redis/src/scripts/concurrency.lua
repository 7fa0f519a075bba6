-- What is in flight: a sorted set with a member for each place, scored by when it is free again.

-- So many places are looked through at most for a holder's.
local SEARCHED_MAX = 1000

local function add(cell, from, count, holder, until_micros)
  local added, at = 0, 0
  while at < count do
    local names = {}
    for i = 1, math.min(count - at, 1000) do
      names[i * 2 - 1], names[i * 2] = until_micros, holder .. '/' .. (from + at + i)
    end
    added = added + call('ZADD', cell.key, 'NX', unpack(names))
    at = at + #names / 2
  end
  return added
end

-- Removes the places of a holder, which are numbered from 1 on. Who has no name (0) may have taken
-- more than once, and so may have any numbers.
local function remove(cell, holder)
  local removed, at = 0, 0
  repeat
    local names = {}
    for i = 1, 16 do names[i] = holder .. '/' .. (at + i) end
    local some = call('ZREM', cell.key, unpack(names))
    removed, at = removed + some, at + 16
  until some < 16
  if (removed == 0 or holder == '0') and cell.held <= SEARCHED_MAX then
    for _, name in ipairs(call('ZRANGE', cell.key, 0, -1)) do
      if string.sub(name, 1, #holder + 1) == holder .. '/' then
        removed = removed + call('ZREM', cell.key, name)
      end
    end
  end
  return removed
end

-- When the place of this number, from 0 on, is free again; below zero from the last on.
local function free_at(cell, at)
  local found = call('ZRANGE', cell.key, at, at, 'WITHSCORES')
  return tonumber(found[2]) or now
end

-- The last place may end no later than one that is taken now, unless the clock was set back.
local function last_free(cell)
  local last, most = free_at(cell, -1), now + cell.limit.lease
  if last <= most + STEP then return last end
  for _, name in ipairs(call('ZRANGEBYSCORE', cell.key, '(' .. string.format('%.0f', most), '+inf')) do
    call('ZADD', cell.key, most, name)
  end
  return most
end

kinds.concurrency = {
  read = function(limit)
    limit.places, limit.lease = number(), number()
  end,

  load = function(cell)
    local gone = try('ZREMRANGEBYSCORE', cell.key, '-inf', now)
    if type(gone) == 'table' then call('DEL', cell.key) end
    cell.held = call('ZCARD', cell.key)
  end,

  check = function(cell, cost)
    local free = cell.limit.places - cell.held
    if free < 0 then free = 0 end
    tell(cell.held)
    local asked = cost == 0 and 1 or cost
    if asked <= free and cost > 0 then
      tell(now)
      tell(0)
      return true
    end
    local last = cell.held > 0 and last_free(cell) or 0
    local place = asked - free - 1
    if place < 0 then
      tell(now)
    else
      tell(place < cell.held and free_at(cell, place) or last)
    end
    tell(last)
    return asked <= free and asked <= cell.limit.places
  end,

  spend = function(cell, cost, holder)
    local until_micros, from = now + cell.limit.lease, 0
    local missing = cost - add(cell, from, cost, holder, until_micros)
    -- Who takes twice under one name has places of further numbers.
    from = cell.held
    while missing > 0 do
      local added = add(cell, from, missing, holder, until_micros)
      from, missing = from + missing, missing - added
    end
    cell.held = cell.held + cost
  end,

  -- A refused request is not in flight.
  charge = function() end,

  -- Those of the holder, or those that end soonest for callers that kept no name.
  refund = function(cell, cost, holder)
    if holder ~= '' then
      cell.held = cell.held - remove(cell, holder)
    elseif cost > 0 then
      cell.held = cell.held - #call('ZPOPMIN', cell.key, cost) / 2
    end
  end,

  -- Nobody takes places ahead.
  left = function()
    return 0
  end,

  lower = function() end,

  save = function(cell)
    if cell.held > 0 then
      expire(cell.key, expiry(free_at(cell, -1) / 1000), cell.limit.ttl)
    end
  end,
}
