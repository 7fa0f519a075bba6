-- Sliding logs: a list of what was accepted, oldest first, behind a head of total, time of the last
-- write and numbers. An entry is its time in microseconds, with its cost behind it unless that is 1.
--
-- A long list is never read whole: what has gone or will go next is at its begin, what comes is put
-- to its end. Only callers with patience, refunds and changed numbers need more.

-- How much is read at first: few entries go between two requests.
local CHUNK = 4

local function entry(time, cost)
  if cost == 1 then return string.format('%.0f', time) end
  return string.format('%.0f %.0f', time, cost)
end

local function time_and_cost(text)
  local time = tonumber(text)
  if time then return time, 1 end
  local cost
  time, cost = string.match(text, '^(%d+) (%d+)$')
  return tonumber(time), tonumber(cost)
end

local function head(cell)
  return string.format('%.0f %.0f %s', cell.total, cell.time, cell.limit.text)
end

local function note(cell, texts, from, to)
  for i = from, to do
    local time, cost = time_and_cost(texts[i])
    cell.size = cell.size + 1
    cell.times[cell.size], cell.costs[cell.size] = time, cost
  end
end

-- All was read: now what is still to be written follows.
local function finish(cell)
  cell.complete = true
  for i, time in ipairs(cell.added) do
    -- The first may stand for the last that was read.
    if i > 1 or not cell.replaces then cell.size = cell.size + 1 end
    cell.times[cell.size], cell.costs[cell.size] = time, cell.added_costs[i]
  end
end

-- Reads on, twice as much each time.
local function more(cell)
  cell.length = cell.length or call('LLEN', cell.key) - 1
  local texts = call('LRANGE', cell.key, cell.size + 1, cell.size + cell.chunk)
  note(cell, texts, 1, #texts)
  cell.chunk = cell.chunk * 2
  if cell.size >= cell.length then finish(cell) end
end

local function read_all(cell)
  while not cell.complete do more(cell) end
end

-- Whether there is an entry of this number.
local function has(cell, at)
  while at > cell.size and not cell.complete do more(cell) end
  return at <= cell.size
end

local function clear(cell)
  cell.times, cell.costs, cell.size, cell.first = {}, {}, 0, 1
  cell.total, cell.complete, cell.chunk, cell.time = 0, true, CHUNK, now
  cell.length = nil
  -- What is to be put to the end; the first may replace the last that is there.
  cell.added, cell.added_costs, cell.replaces = {}, {}, false
  cell.last, cell.last_cost, cell.stored_last = nil, nil, nil
  -- Whether the oldest that counts has changed, or all.
  cell.changed, cell.rewrite = false, false
end

-- What has gone by now no longer counts.
local function forget(cell, length)
  while has(cell, cell.first) and cell.times[cell.first] + length <= cell.time do
    cell.total = cell.total - cell.costs[cell.first]
    cell.first = cell.first + 1
  end
end

local function carry_log(cell, old)
  read_all(cell)
  local count, length = numbers(old)
  if not count then
    call('DEL', cell.key)
    return clear(cell)
  end
  forget(cell, length)
  local kept, costs, size, before, given = {}, {}, 0, 0, 0
  for i = cell.first, cell.size do
    before = before + cell.costs[i]
    local cost = share(before, count, cell.limit.count) - given
    given = given + cost
    if cost > 0 then
      size = size + 1
      kept[size], costs[size] = cell.times[i], cost
    end
  end
  cell.times, cell.costs, cell.size, cell.first, cell.total = kept, costs, size, 1, given
  cell.rewrite = true
end

-- The clock was set back far: the whole log goes with it.
local function shift(cell, by)
  read_all(cell)
  for i = 1, cell.size do cell.times[i] = cell.times[i] - by end
  cell.rewrite = true
end

local function load_log(cell)
  clear(cell)
  -- One more than is noted: as long as not all is, the last entry is not.
  local texts = try('LRANGE', cell.key, 0, CHUNK + 1)
  if texts.err then return call('DEL', cell.key) end
  if #texts == 0 then return end
  local total, time, numbers_then = string.match(texts[1], '^(%d+) (%d+) (.+)$')
  if not total then return call('DEL', cell.key) end
  cell.total, time = tonumber(total), tonumber(time)
  cell.complete = #texts <= CHUNK + 1
  note(cell, texts, 2, cell.complete and #texts or CHUNK + 1)
  if time > now + STEP then
    shift(cell, time - now)
  elseif time > now then
    cell.time = time
  end
  if numbers_then ~= cell.limit.text then carry_log(cell, numbers_then) end
  forget(cell, cell.limit.length)
end

-- When the newest entry was, and what it costs; nothing without one.
local function newest(cell)
  if cell.last then return cell.last, cell.last_cost end
  if cell.complete then
    if cell.first > cell.size then return end
    cell.last, cell.last_cost = cell.times[cell.size], cell.costs[cell.size]
  else
    cell.last, cell.last_cost = time_and_cost(call('LINDEX', cell.key, -1))
  end
  return cell.last, cell.last_cost
end

-- The earliest instant at which so much more has room.
local function turn(cell, cost)
  local excess = cell.total + cost - cell.limit.count
  if excess <= 0 then return cell.time end
  local at = cell.first
  while has(cell, at) do
    if excess <= cell.costs[at] then
      local gone = cell.times[at] + cell.limit.length
      return gone > cell.time and gone or cell.time
    end
    excess, at = excess - cell.costs[at], at + 1
  end
  return cell.time
end

local function log_idle(cell)
  local last = newest(cell)
  return last and last + cell.limit.length or 0
end

local function rewrite_log(cell)
  call('DEL', cell.key)
  local texts, count = { head(cell) }, 1
  for i = cell.first, cell.size do
    count = count + 1
    texts[count] = entry(cell.times[i], cell.costs[i])
    -- As many as a call may have.
    if count == 1000 then
      call('RPUSH', cell.key, unpack(texts))
      texts, count = {}, 0
    end
  end
  if count > 0 then call('RPUSH', cell.key, unpack(texts)) end
  expire(cell.key, expiry(log_idle(cell) / 1000), cell.limit.ttl)
end

local function save_log(cell)
  if cell.total == 0 then return call('DEL', cell.key) end
  if cell.rewrite or (cell.changed and cell.complete) then return rewrite_log(cell) end
  local key, first = cell.key, cell.first
  if cell.replaces then call('RPOP', key) end
  if cell.changed then
    call('LPOP', key, first + 1)
    call('LPUSH', key, entry(cell.times[first], cell.costs[first]), head(cell))
  elseif first > 1 or cell.complete then
    call('LPOP', key, first)
    call('LPUSH', key, head(cell))
  else
    call('LSET', key, 0, head(cell))
  end
  for i, time in ipairs(cell.added) do call('RPUSH', key, entry(time, cell.added_costs[i])) end
  -- A list that was never empty keeps the time it was told.
  local idle, told = expiry(log_idle(cell) / 1000), nil
  if cell.stored_last and not cell.complete then
    told = expiry((cell.stored_last + cell.limit.length) / 1000)
  end
  if idle ~= told or cell.limit.ttl > 0 then expire(key, idle, cell.limit.ttl) end
end

local function reload(cell)
  local time = cell.time
  load_log(cell)
  cell.time = time
end

-- Brings the list up to date and reads it anew, so that it can be changed in place.
local function settle(cell)
  save_log(cell)
  reload(cell)
end

-- Puts an entry before those that are later.
local function insert(cell, time, cost)
  settle(cell)
  local key, to, pivot = cell.key, -1, nil
  while true do
    local texts = call('LRANGE', key, to - 63, to)
    for i = #texts, 1, -1 do
      local later = time_and_cost(texts[i])
      -- The head is none.
      if not later or later <= time then
        to = nil
        break
      end
      pivot = texts[i]
    end
    if not to or #texts < 64 then break end
    to = to - 64
  end
  call('LINSERT', key, 'BEFORE', pivot, entry(time, cost))
  cell.total = cell.total + cost
  call('LSET', key, 0, head(cell))
  reload(cell)
end

local function write(cell, time, cost)
  local last, last_cost = newest(cell)
  if last and last > time then return insert(cell, time, cost) end
  cell.total = cell.total + cost
  if #cell.added == 0 then cell.stored_last = last end
  if last == time then
    cost = cost + last_cost
    if #cell.added == 0 then cell.added[1], cell.replaces = time, true end
    cell.added_costs[#cell.added] = cost
    if cell.complete then cell.costs[cell.size] = cost end
  else
    cell.added[#cell.added + 1], cell.added_costs[#cell.added + 1] = time, cost
    if cell.complete then
      cell.size = cell.size + 1
      cell.times[cell.size], cell.costs[cell.size] = time, cost
    end
  end
  cell.last, cell.last_cost = time, cost
end

kinds.sliding_log = {
  read = function(limit)
    limit.count, limit.length = number(), number()
  end,

  load = load_log,

  check = function(cell, cost, patience)
    if cost == 0 then cost = 1 end
    local passes = cost <= cell.limit.count
    local when = passes and turn(cell, cost) or cell.time
    tell(cell.time)
    tell(cell.total)
    tell(when)
    tell(log_idle(cell))
    return passes and when - cell.time <= (patience > 0 and patience or 0)
  end,

  spend = function(cell, cost)
    write(cell, turn(cell, cost), cost)
  end,

  charge = function(cell, cost)
    local count = cell.limit.count
    if count == 0 then return end
    write(cell, cell.time, cost < count and cost or count)
    -- Only the newest can ever matter; the rest would be memory for an attacker.
    local excess = cell.total - count
    while excess > 0 and has(cell, cell.first) do
      local first = cell.first
      local dropped = cell.costs[first]
      if dropped > excess then
        dropped = excess
        cell.costs[first], cell.changed = cell.costs[first] - dropped, true
        if cell.complete and first == cell.size then cell.last_cost = cell.costs[first] end
      else
        -- Where all is known, what was only just added may be dropped as well.
        cell.first = first + 1
        if cell.complete then cell.rewrite = true end
      end
      cell.total, excess = cell.total - dropped, excess - dropped
    end
  end,

  refund = function(cell, cost)
    while cost > 0 and cell.total > 0 do
      local before = cost
      settle(cell)
      -- Not RPOP, which gives the newest first: what is left goes back in its order.
      local texts = call('LRANGE', cell.key, -64, -1)
      call('LTRIM', cell.key, 0, -1 - #texts)
      local at = #texts
      while at > 0 and cost > 0 do
        local time, taken = time_and_cost(texts[at])
        -- The head is no entry.
        if not time then break end
        if taken > cost then
          texts[at] = entry(time, taken - cost)
          taken = cost
        else
          at = at - 1
        end
        cell.total, cost = cell.total - taken, cost - taken
      end
      if at > 0 then call('RPUSH', cell.key, unpack(texts, 1, at)) end
      if cell.total > 0 then call('LSET', cell.key, 0, head(cell)) else call('DEL', cell.key) end
      reload(cell)
      if cost == before then
        -- Somebody has taken entries out by hand: a total without them would be looked for for ever.
        call('DEL', cell.key)
        clear(cell)
      end
    end
  end,

  left = function(cell)
    local left = cell.limit.count - cell.total
    return left > 0 and left or 0
  end,

  lower = function(cell, time, left)
    if time + cell.limit.length <= cell.time then return end
    local missing = cell.limit.count - left - cell.total
    if missing > 0 then write(cell, time < cell.time and time or cell.time, missing) end
  end,

  save = save_log,
}
