-- Buckets among other limits: see bucket.lua.

kinds.narrow = {
  read = function(limit)
    limit.period, limit.rate, limit.burst, limit.queue = number(), number(), number(), number()
    limit.full, limit.form = limit.burst * limit.period, text()
  end,

  load = function(cell)
    local limit = cell.limit
    cell.level, cell.time, cell.full_second =
      refill(cell.key, limit.period, limit.rate, limit.burst, limit.text)
  end,

  check = function(cell, cost, patience)
    local limit, level = cell.limit, cell.level
    tell(level)
    if cost == 0 then cost = 1 end
    if cost > limit.burst then return false end
    if patience < 0 then return level >= cost * limit.period end
    -- A place in a queue comes when all before it have gone, and there must be room for it now.
    if limit.queue == 1 then
      return level >= cost * limit.period and level + patience * limit.rate >= limit.full
    end
    return level + patience * limit.rate >= cost * limit.period
  end,

  spend = function(cell, cost)
    cell.level = cell.level - cost * cell.limit.period
  end,

  charge = function(cell, cost)
    local limit, level = cell.limit, cell.level
    if cost > limit.burst then cost = limit.burst end
    local after = level - cost * limit.period
    if after < 0 then after = 0 end
    if after < level then cell.level = after end
  end,

  refund = function(cell, cost)
    local level = cell.level + cost * cell.limit.period
    if level > cell.limit.full then level = cell.limit.full end
    cell.level = level
  end,

  left = function(cell)
    local left = floor(cell.level / cell.limit.period)
    return left > 0 and left or 0
  end,

  lower = function(cell, time, left)
    local limit = cell.limit
    local elapsed = now - time
    if elapsed < 0 then elapsed = 0 end
    local most = left * limit.period + elapsed * limit.rate
    if cell.level > most then cell.level = most end
  end,

  save = function(cell)
    local limit = cell.limit
    if cell.level >= limit.full then return call('DEL', cell.key) end
    pour(cell.key, cell.level, cell.time, cell.full_second, limit.period, limit.rate, limit.burst,
      limit.text, limit.form, limit.ttl)
  end,
}
