-- Slices that nodes take ahead, and who holds how much: a hash of nodes with amounts and ends.

-- How long a slice may be spent.
local SLICE = 1000000
-- Of what is left, a node gets so much ahead: near the limit slices shrink to nothing.
local SHARE = 4

-- What all other nodes hold; what has ended is forgotten.
local function held_by_others(held, node)
  local all, sum = call('HGETALL', held), 0
  for i = 1, #all, 2 do
    local amount, ends = string.match(all[i + 1], '^(%d+) (%d+)$')
    ends = tonumber(ends)
    -- An end that is too far away is from before the clock was set back.
    if not ends or ends <= now or ends > now + 2 * SLICE then
      call('HDEL', held, all[i])
    elseif all[i] ~= node then
      sum = sum + tonumber(amount)
    end
  end
  return sum
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

-- A request, and what its node would hold beyond it.
ops.draw = function()
  local node, cell, held = text(), cell_of(number()), KEYS[number()]
  local cost, want, left, most = number(), number(), number(), number()
  local kind, slice = cell.limit.kind, left
  local allowed = kind.check(cell, cost, -1)
  if allowed and cost > 0 then
    kind.spend(cell, cost, node)
    cell.dirty = true
  end
  if allowed and want > 0 then
    local room = most - held_by_others(held, node) - left
    local some = math.min(want, room, floor(kind.left(cell) / SHARE))
    if some > 0 then
      kind.spend(cell, some, node)
      cell.dirty, slice = true, left + some
    end
  end
  local ends = slice_end(cell)
  if most > 0 then hold(held, node, slice, ends) end
  tell(allowed and 1 or 0)
  tell(slice - left)
  tell(ends - now)
end

-- What is given back is what the node is known to hold, and no more.
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
      hold(held, node, known - returned, ends)
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
    if amount > 0 then hold(held, node, amount, slice_end(cell)) end
  end
end
