-- For how long keys are kept.

-- When a key expires (ms) whose state is idle from idle_ms on: 1 to 2 s later. Whole seconds, so that
-- a busy key need not be told at each write; and from the state alone, so that a script knows what
-- was told last time.
local function expiry(idle_ms)
  return (floor(idle_ms / 1000) + 2) * 1000
end

-- Redis adds the time to it, and what overflows then is an error: some 30,000 years are enough.
local function expire(key, at_ms, ttl_ms)
  local ms = at_ms - floor(now / 1000)
  if ms < ttl_ms then ms = ttl_ms end
  if ms > 1e15 then ms = 1e15 end
  call('PEXPIRE', key, ms)
end
