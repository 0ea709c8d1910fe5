// SPDX-License-Identifier: Apache-2.0
// Section: the entries of one part of the inventory, by name.
#pragma once

#include "base/held.h"

#include <cstddef>
#include <initializer_list>
#include <map>
#include <string>
#include <utility>

namespace muster::inventory {

/// A std::map from name to entry of which a header may have a member while it only names the entry.
/// Who looks into it includes the entry's header.
template <class Entry>
class Section {
 public:
  using Map = std::map<std::string, Entry>;

  Section() = default;
  Section(std::initializer_list<std::pair<const std::string, Entry>> entries)
      : entries_(Map(entries)) {}
  Section(Map entries) : entries_(std::move(entries)) {}

  const Map& map() const { return *entries_; }
  Map& map() { return *entries_; }

  auto begin() const { return map().begin(); }
  auto begin() { return map().begin(); }
  auto end() const { return map().end(); }
  auto end() { return map().end(); }
  bool empty() const { return map().empty(); }
  std::size_t size() const { return map().size(); }
  bool contains(const std::string& name) const { return map().contains(name); }
  std::size_t count(const std::string& name) const { return map().count(name); }
  auto find(const std::string& name) const { return map().find(name); }
  auto find(const std::string& name) { return map().find(name); }
  const Entry& at(const std::string& name) const { return map().at(name); }
  Entry& at(const std::string& name) { return map().at(name); }

  Entry& operator[](const std::string& name) { return map()[name]; }
  template <class... Arguments>
  auto emplace(Arguments&&... arguments) {
    return map().emplace(std::forward<Arguments>(arguments)...);
  }
  auto insert_or_assign(const std::string& name, Entry entry) {
    return map().insert_or_assign(name, std::move(entry));
  }
  std::size_t erase(const std::string& name) { return map().erase(name); }
  void clear() { map().clear(); }

 private:
  Held<Map> entries_;
};

}  // namespace muster::inventory
