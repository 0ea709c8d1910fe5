#include "base/json_output.h"

#include <nlohmann/json.hpp>

namespace muster {

std::string jsonText(const nlohmann::json& value, int indent) {
  return value.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace muster
