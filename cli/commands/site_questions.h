// SPDX-License-Identifier: Apache-2.0
// The questions of `muster init`: each answer is verified when it is typed, and asked for again
// where it cannot be.
#pragma once

#include "app/site/new_inventory.h"

#include <istream>
#include <ostream>

namespace muster::cli {

/// Asks for everything but the range of addresses; what stands in `answers` is kept when nothing is
/// typed. False: the input ended before all was answered, and `answers` is as it was.
bool askForAnswers(std::istream& in, std::ostream& out, app::SiteAnswers& answers);

}  // namespace muster::cli
