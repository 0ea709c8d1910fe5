// SPDX-License-Identifier: Apache-2.0
// How the client reads an answer's object, member by member. Internal to api/.
#pragma once

#include "base/clock.h"
#include "base/ids.h"
#include "inventory/parse/hostlist.h"
#include "wire/json_reader.h"

#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace muster::api {

inline constexpr std::size_t kAnswerItems = 1'000'000;
inline constexpr std::size_t kAnswerTextBytes = 16u << 20;
inline constexpr std::uint64_t kAnswerNumber = std::uint64_t{1} << 53;
inline constexpr bool kMayBeAbsent = true;

/// One object of an answer. What is wrong with it is the server's fault and not the user's.
class Members : public wire::JsonReader {
 public:
  Members(const nlohmann::json& object, const char* what) : JsonReader(object, what) {}

  std::string text(const char* key, bool optional = false) {
    return JsonReader::text(key, kAnswerTextBytes, optional);
  }
  std::size_t count(const char* key) {
    return static_cast<std::size_t>(unsignedNumber(key, kAnswerNumber));
  }
  bool flag(const char* key) {
    const auto* value = field(key);
    if (value && !value->is_boolean()) wrong(key, "must be true or false");
    return value && value->is_boolean() && value->get<bool>();
  }
  WallTime time(const char* key, bool optional = false) {
    const auto said = text(key, optional);
    if (said.empty()) return {};
    const auto time = parseWallTime(said);
    if (!time) wrong(key, "is no time");
    return time.value_or(WallTime{});
  }
  std::vector<std::string> texts(const char* key) {
    return wire::readTexts(*this, key, kAnswerItems, kAnswerTextBytes);
  }
  std::vector<NodeName> nodes(const char* key) {
    std::vector<NodeName> out;
    const auto hostlist = text(key);
    if (hostlist.empty()) return out;
    const auto names = inventory::expandHostlist(hostlist);
    if (!names) wrong(key, "is no hostlist");
    if (names)
      for (const auto& name : *names) out.emplace_back(name);
    return out;
  }
  /// One of an enum's words. `parse`: text → optional.
  template <class Parse>
  auto word(const char* key, Parse parse) {
    const auto said = parse(text(key));
    using Value = typename std::remove_cvref_t<decltype(said)>::value_type;
    if (!said) wrong(key, "is a word that this muster does not know");
    return said.value_or(Value{});
  }
  /// Each item by `make`: json → Result.
  template <class Make>
  auto items(const char* key, Make make) {
    using Value = typename std::invoke_result_t<Make, const nlohmann::json&>::value_type;
    std::vector<Value> out;
    for (const auto& each : array(key, kAnswerItems)) {
      auto made = make(each);
      if (!made) {
        take(made.error());
        break;
      }
      out.push_back(std::move(*made));
    }
    return out;
  }
  template <class T>
  Result<T> as(T value) const {
    const auto good = finish();
    if (good) return value;
    if (good.error().code() == ErrorCode::Corrupt) return std::unexpected(good.error());
    return fail(ErrorCode::Corrupt, "the server's answer cannot be read: " + good.error().text());
  }
};

/// Of an answer that must be an object with a list.
inline Result<const nlohmann::json*> itemsOf(const nlohmann::json& answer) {
  const auto items = answer.is_object() ? answer.find("items") : answer.end();
  if (items == answer.end() || !items->is_array())
    return fail(ErrorCode::Corrupt, "the server's answer is no list");
  return &*items;
}

/// Of each item what `make` makes of it; the first error is the answer.
template <class Items, class Make>
auto madeOf(const Items& items, Make make) {
  using Value = typename std::invoke_result_t<Make, const nlohmann::json&>::value_type;
  using Values = Result<std::vector<Value>>;
  std::vector<Value> out;
  for (const nlohmann::json& item : items) {
    auto made = make(item);
    if (!made) return Values(std::unexpected(std::move(made).error()));
    out.push_back(std::move(*made));
  }
  return Values(std::move(out));
}

}  // namespace muster::api
