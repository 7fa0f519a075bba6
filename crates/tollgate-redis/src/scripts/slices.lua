-- Slices that nodes take ahead, and who holds how much: a hash of nodes with amounts and ends.

-- How long a slice may be spent.
local SLICE = 1000000
-- Of what is left, a node gets so much ahead: near the limit slices shrink to nothing.
local SHARE = 4

-- For how long a node wants; a slice that ends sooner is cut in proportion.
local WANTED = 500000

-- What all other nodes hold, and what this one does; what has ended is forgotten.
local function holders(held, node)
  local all, others, own = call('HGETALL', held), 0, 0
  for i = 1, #all, 2 do
    local amount, ends = string.match(all[i + 1], '^(%d+) (%d+)$')
    ends = tonumber(ends)
    -- An end that is too far away is from before the clock was set back.
    if not ends or ends <= now or ends > now + 2 * SLICE then
      call('HDEL', held, all[i])
    elseif all[i] == node then
      own = tonumber(amount)
    else
      others = others + tonumber(amount)
    end
  end
  return others, own
end

local function hold(held, node, amount, ends)
  if amount == 0 then return call('HDEL', held, node) end
  call('HSET', held, node, string.format('%.0f %.0f', amount, ends))
  call('PEXPIRE', held, 2000)
end

local function slice_end(cell)
  local kind, ends = cell.limit.kind, now + SLICE
  if kind.ends and kind.ends(cell) < ends then return kind.ends(cell) end
  return ends
end

-- Of what others leave, three quarters: the next to come finds something, and equal nodes end up with
-- equal slices.
local function grant(cell, want, free, lasts)
  if lasts < WANTED then want = floor(want * lasts / WANTED) end
  return math.min(want, free - floor(free / 4), floor(cell.limit.kind.left(cell) / SHARE))
end

-- A request, and what its node would hold in all.
ops.draw = function()
  local node, cell, held = text(), cell_of(number()), KEYS[number()]
  local cost, want, left, most = number(), number(), number(), number()
  local kind, others, own = cell.limit.kind, holders(held, node)
  -- What it still holds is given back first, so that its request can have it; what has ended
  -- meanwhile is lost.
  if left > own then left = own end
  if left > 0 then
    kind.refund(cell, left, '')
    cell.dirty = true
  end
  local allowed = kind.check(cell, cost, -1)
  if allowed and cost > 0 then
    kind.spend(cell, cost, node)
    cell.dirty = true
  end
  local ends = slice_end(cell)
  local slice = grant(cell, want, most > others and most - others or 0, ends - now)
  if slice > 0 then
    kind.spend(cell, slice, node)
    cell.dirty = true
  end
  if slice > 0 or own > 0 then hold(held, node, slice, ends) end
  tell(allowed and 1 or 0)
  tell(slice)
  tell(ends - now)
end

-- What is given back is what the node is known to hold, and no more; what is missing was spent.
ops.put_back = function()
  local node = text()
  for _ = 1, number() do
    local index, held, amount = number(), KEYS[number()], number()
    local known, ends = string.match(call('HGET', held, node) or '', '^(%d+) (%d+)$')
    known, ends = tonumber(known), tonumber(ends)
    if known and ends > now and ends <= now + 2 * SLICE then
      local cell, returned = cell_of(index), math.min(amount, known)
      cell.limit.kind.refund(cell, returned, '')
      cell.dirty = true
      hold(held, node, 0, ends)
    end
  end
end

ops.reassert = function()
  local node = text()
  for _ = 1, number() do
    local cell, held, amount = cell_of(number()), KEYS[number()], number()
    local time, left = number(), number()
    cell.limit.kind.lower(cell, time, left)
    cell.dirty = true
    -- Another draw may have come first: it holds what it holds.
    local _, own = holders(held, node)
    if own > amount then amount = own end
    if amount > 0 then hold(held, node, amount, slice_end(cell)) end
  end
end
