// SPDX-License-Identifier: Apache-2.0
// Templates that most files use, instantiated in the precompiled header, whose code is made once
// (MUSTER_PCH_CODE in cmake/muster.cmake, docs/adr/0422). Nobody calls these functions.
#pragma once

#include <fmt/format.h>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <nlohmann/json.hpp>

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace muster::precompiled {

using Json = nlohmann::json;
using View = nlohmann::detail::iterator_input_adapter<const char*>;
using Text = nlohmann::detail::iterator_input_adapter<std::string::const_iterator>;

inline void useContainers(std::string text, std::string_view view, std::size_t n) {
  std::vector<std::string> list{text, text};
  list.push_back(text);
  list.emplace_back(view);
  list.emplace_back("text");
  list.insert(list.end(), list.begin(), list.end());
  list.erase(list.begin());
  list = std::vector<std::string>(list.begin(), list.end());
  auto other = list;
  other = list;
  if (other == list) list.resize(n);
  const std::set<std::string> words(list.begin(), list.end());
  auto more_words = words;
  more_words.insert(text);
  more_words.erase(text);
  std::map<std::string, std::string> map{{text, text}};
  map[text] = text;
  map.emplace(text, text);
  map.erase(text);
  map["text"] = text;
  const auto copy = map;
  if (copy.contains(text) && copy.find(text) != copy.end() && copy.at(text) == text) map = copy;
  std::map<std::string, std::string, std::less<>> other_map{{text, text}};
  other_map[text] = text;
  if (other_map.contains(view) && other_map.find(view) != other_map.end()) other_map.clear();
  std::optional<std::string> perhaps = text;
  perhaps = std::nullopt;
  const auto again = perhaps;
  const std::filesystem::path path(text), literal("text");
  if (view.starts_with("a") || view.starts_with(text) || view.ends_with("a")) map.clear();
  text = literal / path / view / "name";
}

inline void useFormat(const std::string& text, std::string_view view, int number, std::size_t n) {
  (void)fmt::format("{}", text);
  (void)fmt::format("{}", view);
  (void)fmt::format("{}", number);
  (void)fmt::format("{}", n);
  (void)fmt::format("{} {}", text, text);
  (void)fmt::format("{} {}", view, view);
  (void)fmt::format("{} {}", text, view);
  (void)fmt::format("{} {}", view, text);
  (void)fmt::format("{} {}", n, text);
  (void)fmt::format("{} {}", text, n);
  (void)fmt::format("{} {}", n, n);
  (void)fmt::format("{} {} {}", text, text, text);
  (void)fmt::format("{:.1f} {:#x} {:02}", 1.0, n, number);
}

inline void useJson(Json json, const std::string& text) {
  const Json& same = json;
  json = Json::parse(text);
  json = Json::parse(text, nullptr, false);
  json = Json::parse(text.data(), text.data() + text.size(), nullptr, false);
  json["text"] = text;
  json["text"] = "text";
  json[text] = json;
  json["number"] = 1;
  json["number"] = std::size_t{1};
  json["number"] = std::uint64_t{1};
  json["number"] = std::int64_t{1};
  json["number"] = 1.0;
  json["flag"] = true;
  json["list"] = Json::array({text, "text", 1, true});
  json["list"] = std::vector<std::string>{text};
  json["map"] = std::map<std::string, std::string>{{text, text}};
  json.push_back(json);
  json.push_back(text);
  json.update(json);
  json.erase("text");
  json.merge_patch(same);
  json = {{"a", text}, {"b", 1}, {"c", json}, {"d", {{"e", "text"}}}};
  (void)(same.dump() + same.at("text").get<std::string>() + same.value("text", std::string()) +
         same.value("text", "text"));
  (void)(same["text"].get<int>() + same["text"].get<double>() + same.value("number", 1) +
         same.value("number", 1.0));
  (void)(same.value("flag", false) || same["text"].get<bool>() || same.contains("text") ||
         same.find("text") != same.end());
  (void)(same["text"].get<std::uint64_t>() + same["text"].get<std::uint32_t>() +
         same["text"].get<std::int64_t>());
  (void)same["list"].get<std::vector<std::string>>();
  (void)(same == json || same == "text" || same["text"] == text);
  (void)same["text"].get_ref<const std::string&>();
  for (const auto& [key, value] : same.items()) json[key] = value;
  for (const auto& value : same) json.push_back(value);
  if (same.is_object() || same.is_array() || same.is_string() || same.is_number_unsigned())
    json.clear();
}

inline boost::asio::awaitable<void> useAsio(boost::asio::io_context& io) {
  boost::asio::steady_timer timer(co_await boost::asio::this_coro::executor);
  timer.expires_after(std::chrono::seconds(1));
  co_await timer.async_wait(boost::asio::use_awaitable);
  timer.cancel();
  io.run();
  io.run_for(std::chrono::seconds(1));
}

}  // namespace muster::precompiled

template class nlohmann::basic_json<>;
template class nlohmann::detail::serializer<muster::precompiled::Json>;
template class nlohmann::detail::lexer<muster::precompiled::Json, muster::precompiled::View>;
template class nlohmann::detail::lexer<muster::precompiled::Json, muster::precompiled::Text>;
template class nlohmann::detail::parser<muster::precompiled::Json, muster::precompiled::View>;
template class nlohmann::detail::parser<muster::precompiled::Json, muster::precompiled::Text>;
template class nlohmann::detail::json_sax_dom_parser<muster::precompiled::Json>;
template class nlohmann::detail::json_sax_dom_callback_parser<muster::precompiled::Json>;
template class std::basic_string<char>;
template class std::vector<char>;
template class std::vector<std::string>;
template class std::vector<muster::precompiled::Json>;
template class std::map<std::string, std::string>;
template class std::map<std::string, muster::precompiled::Json, std::less<>>;
template class std::set<std::string>;
