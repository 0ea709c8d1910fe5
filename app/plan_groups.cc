// SPDX-License-Identifier: Apache-2.0
#include "app/plan_groups.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <tuple>

namespace muster::app {
namespace {

constexpr std::string_view kAnyNode = "NODE";

bool isOfName(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) || letter == '-' || letter == '.' ||
         letter == '_';
}

/// The text with NODE for this node's own name: a name that only begins so stays.
std::string withoutName(std::string_view text, const std::string& name) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const auto found = std::min(text.find(name, at), text.size());
    out.append(text.substr(at, found - at));
    if (found == text.size()) break;
    const auto end = found + name.size();
    const bool is_word =
        (found == 0 || !isOfName(text[found - 1])) && (end == text.size() || !isOfName(text[end]));
    out.append(is_word ? kAnyNode : std::string_view(name));
    at = end;
  }
  return out;
}

}  // namespace

std::vector<PlanGroup> groupsOf(const lifecycle::Plan& plan) {
  using Key = std::tuple<std::string, std::string, std::string, lifecycle::Disruption, std::string>;
  std::map<Key, std::size_t> places;
  std::vector<PlanGroup> out;
  std::vector<std::string> own_words;  // what is blocked, in the words of the group's first node
  for (const auto& action : plan.actions) {
    const auto name = action.facet.subject.str();
    auto blocked = withoutName(action.blocked, name);
    const Key key{action.facet.facet.str(), action.from, action.to, action.disruption, blocked};
    const auto [place, is_new] = places.try_emplace(key, out.size());
    if (is_new) {
      out.push_back({action.facet.facet.str(),
                     action.from,
                     action.to,
                     action.disruption,
                     action.reason,
                     std::move(blocked),
                     action.expected,
                     {}});
      own_words.push_back(action.blocked);
    }
    out[place->second].subjects.push_back(name);
  }
  for (std::size_t i = 0; i < out.size(); ++i)
    if (out[i].subjects.size() == 1) out[i].blocked = std::move(own_words[i]);
  std::ranges::stable_sort(out, [](const PlanGroup& a, const PlanGroup& b) {
    return std::tuple(!a.blocked.empty(), -static_cast<int>(a.disruption), b.subjects.size()) <
           std::tuple(!b.blocked.empty(), -static_cast<int>(b.disruption), a.subjects.size());
  });
  return out;
}

}  // namespace muster::app
