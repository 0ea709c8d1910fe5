// SPDX-License-Identifier: Apache-2.0
// Headers that nearly every test needs and that are slow to parse.
#pragma once

#include "base/pch.h"
#include "tests/print_json.h"
#include "tests/run_async.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
