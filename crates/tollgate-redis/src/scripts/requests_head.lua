-- Requests of every kind, in their order, each all or nothing.
--
-- A cell is one limit of one key. It is read when it is first asked and written at the end, however
-- many requests ask it. Each kind of limit is a table of functions on cells:
--   read(limit)                     the rest of its numbers from the arguments
--   load(cell)                      its state from Redis, as it is now
--   check(cell, cost, patience)     whether the request passes; what it saw is answered
--   spend(cell, cost, holder)       takes what was just allowed
--   charge(cell, cost)              takes what there is for a request that was refused
--   refund(cell, cost, holder)      gives back, never more than was taken
--   left(cell)                      how much is left, in whole numbers
--   lower(cell, time, left)         takes what was seen to be taken at some time
--   save(cell)                      its state to Redis

local kinds, ops, cell_of = {}, {}, nil
local argument = 0

local function text()
  argument = argument + 1
  return ARGV[argument]
end

local function number()
  argument = argument + 1
  return tonumber(ARGV[argument])
end

local answer, size = { now }, 1

local function tell(value)
  size = size + 1
  answer[size] = value
end
