// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.
#pragma once
#include <sqlite3.h>
