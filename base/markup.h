// SPDX-License-Identifier: Apache-2.0
// Text inside HTML, SVG and XML.
#pragma once

#include <string>
#include <string_view>

namespace muster {

/// Fit for elements and for attributes in either kind of quotes. Printable (base/printable.h), so
/// that nothing XML 1.0 does not have, and nothing that turns other words round, comes through;
/// line feeds and tabs stay.
std::string escapedMarkup(std::string_view text);

}  // namespace muster
