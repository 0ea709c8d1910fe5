// SPDX-License-Identifier: Apache-2.0
// What texts about several nodes have in common, and the hostlists of those nodes: a fleet's report
// is as long as it has different things to say.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace muster::cli {

/// Digests in the text cut to eight digits: enough for people to tell two of them apart.
std::string briefDigests(const std::string& value);

/// Appends `text` with NODE for the node's own name, and … for digests.
void appendCommon(std::string& out, std::string_view text, std::string_view name);
std::string commonText(std::string_view text, std::string_view name);

/// Nodes by what is said about them, in the order in which it was said first.
class NodesByText {
 public:
  struct Group {
    std::string text;    ///< as it was said of the first node
    std::string common;  ///< what it has in common with the others
    std::vector<std::string> nodes;
    const std::string& shown() const { return nodes.size() == 1 ? text : common; }
    std::string hostlist() const;  ///< "gpu[001-128]"
  };
  void add(const std::string& node, const std::string& text);
  const std::vector<Group>& groups() const { return groups_; }

 private:
  std::vector<Group> groups_;
  std::unordered_map<std::string, std::size_t> index_;
};

}  // namespace muster::cli
