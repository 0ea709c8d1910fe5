// SPDX-License-Identifier: Apache-2.0
#include "base/json_input.h"

#include "base/utf8.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <vector>

namespace muster {

namespace {

using nlohmann::json;

/// Builds the value bottom-up as the parser tells of it, and stops the parser at the first thing
/// that is too much.
class Builder : public nlohmann::json_sax<json> {
 public:
  explicit Builder(const JsonLimits& limits) : limits_(limits) {}

  bool null() override { return put(nullptr); }
  bool boolean(bool value) override { return put(value); }
  bool number_integer(number_integer_t value) override { return put(value); }
  bool number_unsigned(number_unsigned_t value) override { return put(value); }
  bool number_float(number_float_t value, const string_t&) override { return put(value); }
  bool string(string_t& value) override { return put(std::move(value)); }
  bool binary(binary_t&) override { return refuse("has binary values"); }

  bool start_object(std::size_t) override { return open(json::object()); }
  bool start_array(std::size_t) override { return open(json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    auto& object = open_.back()->get_ref<json::object_t&>();
    const auto [entry, fresh] = object.try_emplace(std::move(name));
    if (!fresh && limits_.duplicates == DuplicateKeys::Refused)
      return refuse("has a key twice in one object");
    slot_ = &entry->second;
    return true;
  }

  bool parse_error(std::size_t position, const std::string&,
                   const json::exception& error) override {
    constexpr int kNumberOverflow = 406;  // nlohmann's out_of_range.406
    return refuse(fmt::format(
        "{} at byte {}", error.id == kNumberOverflow ? "has a number out of range" : "is not JSON",
        position));
  }

  json take() { return std::move(root_); }
  const std::string& problem() const { return problem_; }

 private:
  bool refuse(std::string why) {
    problem_ = std::move(why);
    return false;
  }

  template <class T>
  bool put(T&& value) {
    return place(std::forward<T>(value)) != nullptr;
  }

  template <class T>
  json* place(T&& value) {
    if (++values_ > limits_.values) {
      refuse(fmt::format("has more than {} values", limits_.values));
      return nullptr;
    }
    if (open_.empty()) return &(root_ = json(std::forward<T>(value)));
    if (open_.back()->is_array())
      return &open_.back()->get_ref<json::array_t&>().emplace_back(std::forward<T>(value));
    return &(*slot_ = json(std::forward<T>(value)));
  }

  bool open(json container) {
    if (open_.size() >= limits_.levels)
      return refuse(fmt::format("is nested deeper than {} levels", limits_.levels));
    auto* placed = place(std::move(container));
    if (placed) open_.push_back(placed);
    return placed != nullptr;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  const JsonLimits& limits_;
  json root_;
  std::vector<json*> open_;  ///< from the root inwards. An element grows no more once something is
                             ///< open within it, so these stay
  json* slot_ = nullptr;     ///< where the value of the last key goes
  std::size_t values_ = 0;
  std::string problem_;
};

}  // namespace

Result<json> parseJson(std::string_view text, const JsonLimits& limits) {
  const auto refused = [&](std::string_view why) {
    return fail(ErrorCode::Corrupt, fmt::format("{} {}", limits.party, why));
  };
  if (text.size() > limits.bytes)
    return refused(fmt::format("has {} bytes; at most {} are read", text.size(), limits.bytes));
  std::string repaired;
  if (limits.broken == BrokenUtf8::Replaced) {
    repaired = validUtf8(text);
    text = repaired;
  }
  Builder builder(limits);
  if (!json::sax_parse(text.begin(), text.end(), &builder)) return refused(builder.problem());
  return builder.take();
}

json jsonOrNone(std::string_view text, const JsonLimits& limits) {
  auto parsed = parseJson(text, limits);
  return parsed ? std::move(*parsed) : json(json::value_t::discarded);
}

}  // namespace muster
