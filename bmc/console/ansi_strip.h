// SPDX-License-Identifier: Apache-2.0
// What a serial line said, as text for people. A machine's console is written by whoever runs on
// the machine: what of it goes into a finding, a log or another person's terminal must be nothing
// but letters.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace muster::bmc {

inline constexpr std::size_t kConsoleLineBytes =
    240;  ///< of one line; the rest of a longer one is left out

/// The last `max_lines` lines that are not empty. Terminal sequences (CSI, OSC, DCS and the rest),
/// control characters of both sets, letters that turn the direction of writing and bytes that are
/// no UTF-8 do not come through. Of a line that was overwritten (a progress bar) what was written
/// last stays; a jump of the cursor to another place begins a new line, so that the screens of
/// firmware can be read.
std::vector<std::string> plainLines(std::string_view raw, std::size_t max_lines);

}  // namespace muster::bmc
