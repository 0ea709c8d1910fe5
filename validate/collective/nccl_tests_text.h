// SPDX-License-Identifier: Apache-2.0
// The table that nccl-tests print, in whatever columns its release has.
#pragma once

#include "validate/collective/nccl_tests.h"

namespace muster::collective {

/// Errors: Corrupt
Result<NcclTest> parseNcclTestsText(std::string_view output, std::string_view program);

/// What both forms of output must satisfy: a rate that fits its size and time.
/// Errors: Corrupt
Result<void> requirePlausible(std::uint64_t bytes, const Measured& seen);

/// Whether all was checked that this program can check (NcclTest::checked).
bool allChecked(const std::vector<TestRow>& rows, std::string_view program);

}  // namespace muster::collective
