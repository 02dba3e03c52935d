-- SPDX-License-Identifier: Apache-2.0
-- Part of Lamplighter.
--
-- Each request registers another installation.

local key, count = os.getenv("KEY"), tonumber(os.getenv("FIRST"))
local headers = { ["Authorization"] = "Bearer " .. key, ["Content-Type"] = "application/json" }
local token = string.rep("ab", 32)

function request()
  count = count + 1
  local path = "/v1/apps/com.example.Home/environments/production/installations/I" .. count .. "/controls/Garage"
  local body = '{"sequence":' .. count .. ',"targets":[{"token":"' .. token
    .. '","shows":[{"kind":"com.example.garageDoor","subjects":["door-' .. count .. '"]}]}]}'
  return wrk.format("PUT", path, headers, body)
end
