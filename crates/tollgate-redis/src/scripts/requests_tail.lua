-- Carries out what the head has prepared.

local limits, cells = {}, {}

for i = 1, number() do
  local kind = kinds[text()]
  local limit = { kind = kind, text = text(), ttl = number() }
  kind.read(limit)
  limits[i] = limit
end

for i = 1, number() do
  cells[i] = { key = KEYS[number()], limit = limits[number()] }
end

cell_of = function(index)
  local cell = cells[index]
  if not cell.loaded then
    cell.limit.kind.load(cell)
    cell.loaded = true
  end
  return cell
end

-- Writes a cell before another with the same name and other numbers is read.
ops.settle = function()
  local cell = cells[number()]
  if cell.dirty then cell.limit.kind.save(cell) end
  cell.dirty, cell.loaded = false, false
end

-- The same tables for all requests: most have one limit or two.
local asked, costs, charged = {}, {}, {}

ops.take = function()
  local patience, holder, count = number(), text(), number()
  local at, allowed = argument, true
  argument = at + count * 3
  for i = 1, count do
    local cell, cost = cell_of(tonumber(ARGV[at + 1])), tonumber(ARGV[at + 2])
    asked[i], costs[i], charged[i] = cell, cost, ARGV[at + 3] == '1'
    at = at + 3
    if not cell.limit.kind.check(cell, cost, patience) then allowed = false end
  end
  tell(allowed and 1 or 0)
  for i = 1, count do
    local cell, cost = asked[i], costs[i]
    if cost > 0 and (allowed or charged[i]) then
      local kind = cell.limit.kind
      if allowed then kind.spend(cell, cost, holder) else kind.charge(cell, cost) end
      cell.dirty = true
    end
  end
end

-- Gives back; what is answered is the level after it.
ops.refund = function()
  local holder = text()
  local allowed = true
  for _ = 1, number() do
    local cell = cell_of(number())
    cell.limit.kind.refund(cell, number(), holder)
    cell.dirty = true
    if not cell.limit.kind.check(cell, 0, -1) then allowed = false end
  end
  tell(allowed and 1 or 0)
end

ops.release = function()
  local holder = text()
  for _ = 1, number() do
    local cell = cell_of(number())
    cell.limit.kind.refund(cell, 0, holder)
    cell.dirty = true
  end
end

ops.reset = function()
  for _ = 1, number() do
    local cell, held = cells[number()], KEYS[number()]
    call('DEL', cell.key, held)
    cell.dirty, cell.loaded = false, false
  end
end

local last = #ARGV
while argument < last do ops[text()]() end

for _, cell in ipairs(cells) do
  if cell.dirty then cell.limit.kind.save(cell) end
end

return answer
