local time = call('TIME')
-- Microseconds since the epoch.
local now = time[1] * 1000000 + time[2]
