// SPDX-License-Identifier: Apache-2.0
// What no word may hold that people write and that is kept: a reason in the log says to everybody
// who reads it what it says to its author.
#pragma once

#include <string_view>

namespace muster {

/// Whether the text holds control characters (C0, DEL, C1), separators of lines or paragraphs, or
/// signs that turn or isolate the direction of what stands behind them ("gpj.exe" shows as
/// "exe.jpg"). Marks of direction and joiners are none: languages need them. Bytes that are no
/// UTF-8 are none either.
/// `lines`: of a text that has several, as a file has them: line ends and tabs are none.
/// Source: Unicode 15.1, Cc, Zl, Zp; UAX #9, explicit directional formatting
bool hasControlSigns(std::string_view text, bool lines = false);

}  // namespace muster
