// Text inside HTML, SVG and XML.
#pragma once

#include <string>
#include <string_view>

namespace muster {

/// Fit for elements and for attributes in either kind of quotes. Control characters, which XML 1.0 does not have, become '?'; line ends and
/// tabs stay.
std::string escapedMarkup(std::string_view text);

}  // namespace muster
