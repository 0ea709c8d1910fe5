// SPDX-License-Identifier: Apache-2.0
#include "tests/print_json.h"

#include <ostream>

NLOHMANN_JSON_NAMESPACE_BEGIN
void PrintTo(const json& value, std::ostream* out) {
  *out << value.dump(-1, ' ', false, json::error_handler_t::replace);
}
NLOHMANN_JSON_NAMESPACE_END
