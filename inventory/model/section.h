// SPDX-License-Identifier: Apache-2.0
// Section and Parts: entries by name, and in order, of which a header only names the type.
//
// A std::map and a std::vector behind Held (base/held.h): who looks into one includes the header of
// its entries.
#pragma once

#include "base/held.h"

#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace muster::inventory {

/// Entries of one part of the inventory, by name.
template <class Entry>
class Section {
 public:
  using Map = std::map<std::string, Entry>;

  Section() = default;
  Section(std::initializer_list<std::pair<const std::string, Entry>> entries)
      : entries_(Map(entries)) {}
  template <std::same_as<Map> Entries>
  Section(Entries entries) : entries_(std::move(entries)) {}

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
  template <class... Arguments>
  auto try_emplace(const std::string& name, Arguments&&... arguments) {
    return map().try_emplace(name, std::forward<Arguments>(arguments)...);
  }
  /// Entries whose names are there already are left out.
  template <class Iterator>
  void insert(Iterator from, Iterator to) {
    map().insert(from, to);
  }
  std::size_t erase(const std::string& name) { return map().erase(name); }
  void clear() { map().clear(); }

 private:
  Held<Map> entries_;
};

/// Parts of one entry, in order.
template <class Part>
class Parts {
 public:
  using List = std::vector<Part>;

  Parts() = default;
  Parts(std::initializer_list<Part> parts) : parts_(List(parts)) {}
  template <std::same_as<List> Given>
  Parts(Given parts) : parts_(std::move(parts)) {}

  const List& list() const { return *parts_; }
  List& list() { return *parts_; }
  operator const List&() const { return list(); }

  auto begin() const { return list().begin(); }
  auto begin() { return list().begin(); }
  auto end() const { return list().end(); }
  auto end() { return list().end(); }
  bool empty() const { return list().empty(); }
  std::size_t size() const { return list().size(); }
  const Part& operator[](std::size_t at) const { return list()[at]; }
  Part& operator[](std::size_t at) { return list()[at]; }
  const Part& at(std::size_t place) const { return list().at(place); }
  Part& at(std::size_t place) { return list().at(place); }
  const Part& front() const { return list().front(); }
  Part& front() { return list().front(); }
  const Part& back() const { return list().back(); }
  Part& back() { return list().back(); }

  void push_back(Part part) { list().push_back(std::move(part)); }
  void clear() { list().clear(); }

 private:
  Held<List> parts_;
};

}  // namespace muster::inventory
