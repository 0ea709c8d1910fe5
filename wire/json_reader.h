// SPDX-License-Identifier: Apache-2.0
// Reads the fields of one JSON object strictly: the first thing that is wrong is kept, with the
// path to it.
#pragma once

#include "base/result.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace muster::wire {

/// The text as a JSON object. Errors: Corrupt (not JSON, not an object, larger than `max_bytes`)
Result<nlohmann::json> parseObject(std::string_view text, std::size_t max_bytes,
                                   std::string_view what);

class JsonReader {
 public:
  JsonReader(const nlohmann::json& object, std::string path)
      : object_(object), path_(std::move(path)) {
    if (!object_.is_object()) wrong("", "must be an object");
  }

  /// Null when absent or after an error; an absent key is an error unless it is optional.
  const nlohmann::json* field(const char* key, bool optional = false) {
    if (error_) return nullptr;
    auto it = object_.find(key);
    if (it != object_.end()) return &*it;
    if (!optional) wrong(key, "is missing");
    return nullptr;
  }

  std::string text(const char* key, std::size_t max_bytes, bool optional = false) {
    const auto* value = field(key, optional);
    if (!value) return {};
    if (!value->is_string()) return wrong(key, "must be text"), std::string();
    auto text = value->get<std::string>();
    if (text.size() > max_bytes)
      return wrong(key, "is longer than " + std::to_string(max_bytes) + " bytes"), std::string();
    return text;
  }

  double number(const char* key, double fallback) {
    const auto* value = field(key, true);
    if (!value) return fallback;
    if (!value->is_number()) return wrong(key, "must be a number"), fallback;
    return value->get<double>();
  }

  bool flag(const char* key, bool fallback) {
    const auto* value = field(key, true);
    if (!value) return fallback;
    if (!value->is_boolean()) return wrong(key, "must be true or false"), fallback;
    return value->get<bool>();
  }

  std::uint64_t unsignedNumber(const char* key, std::uint64_t max, bool optional = false) {
    const auto* value = field(key, optional);
    if (!value) return 0;
    if (!value->is_number_unsigned() || value->get<std::uint64_t>() > max) {
      return wrong(key, "must be a whole number of at most " + std::to_string(max)), 0;
    }
    return value->get<std::uint64_t>();
  }

  const nlohmann::json& array(const char* key, std::size_t max_items, bool optional = false) {
    static const nlohmann::json kEmpty = nlohmann::json::array();
    const auto* value = field(key, optional);
    if (!value) return kEmpty;
    if (!value->is_array()) return wrong(key, "must be a list"), kEmpty;
    if (value->size() > max_items)
      return wrong(key, "has more than " + std::to_string(max_items) + " entries"), kEmpty;
    return *value;
  }

  const nlohmann::json& object(const char* key, std::size_t max_items, bool optional = false) {
    static const nlohmann::json kEmpty = nlohmann::json::object();
    const auto* value = field(key, optional);
    if (!value) return kEmpty;
    if (!value->is_object()) return wrong(key, "must be an object"), kEmpty;
    if (value->size() > max_items)
      return wrong(key, "has more than " + std::to_string(max_items) + " entries"), kEmpty;
    return *value;
  }

  void wrong(std::string_view key, std::string why) {
    if (error_) return;
    std::string where = path_ + (key.empty() ? "" : ".") + std::string(key);
    error_.emplace(ErrorCode::InvalidInput, where + " " + std::move(why));
  }
  void take(const Error& error) {
    if (!error_) error_ = error;
  }
  const std::string& path() const { return path_; }

  Result<void> finish() const {
    if (error_) return std::unexpected(*error_);
    return {};
  }

 private:
  const nlohmann::json& object_;
  std::string path_;
  std::optional<Error> error_;
};

/// A list of texts. Errors go into the reader.
std::vector<std::string> readTexts(JsonReader& reader, const char* key, std::size_t max_items,
                                   std::size_t max_bytes, bool optional = false);
inline constexpr std::size_t kMaxMapTextBytes = 16u << 10;
/// An object whose values are texts.
std::map<std::string, std::string> readTextMap(JsonReader& reader, const char* key,
                                               std::size_t max_items, bool optional = false,
                                               std::size_t max_bytes = kMaxMapTextBytes);

}  // namespace muster::wire
