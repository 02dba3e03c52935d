// SPDX-License-Identifier: Apache-2.0
// nghttp2 for Swift.
#pragma once
#include <nghttp2/nghttp2.h>
