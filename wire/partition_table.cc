// SPDX-License-Identifier: Apache-2.0
#include "wire/partition_table.h"

#include "base/json_input.h"
#include "base/json_members.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cctype>
#include <charconv>

namespace muster::wire {

using nlohmann::json;

namespace {

std::uint64_t number(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number_unsigned() ? found->get<std::uint64_t>() : 0;
}

Partition partitionFrom(const json& object) {
  Partition partition{textOf(object, "node"),  0,
                      textOf(object, "name"),  textOf(object, "uuid"),
                      number(object, "start"), number(object, "size")};
  std::transform(partition.uuid.begin(), partition.uuid.end(), partition.uuid.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const auto digits = partition.node.find_last_not_of("0123456789") + 1;
  std::from_chars(partition.node.data() + digits, partition.node.data() + partition.node.size(),
                  partition.number);
  return partition;
}

}  // namespace

PartitionTable readPartitionTable(std::string_view sfdisk_json) {
  PartitionTable table;
  const json object = jsonOrNone(sfdisk_json, kToolJson);
  const auto found = object.is_object() ? object.find("partitiontable") : object.end();
  if (!object.is_object() || found == object.end() || !found->is_object()) return table;
  table.label = textOf(*found, "label");
  table.id = textOf(*found, "id");
  const auto list = found->find("partitions");
  if (list == found->end() || !list->is_array()) return table;
  for (const json& partition : *list)
    if (partition.is_object()) table.partitions.push_back(partitionFrom(partition));
  return table;
}

int sectorBytesOfTable(std::string_view head) {
  const auto gpt_at = [head](std::size_t at) {
    return head.size() >= at && head.substr(at).starts_with("EFI PART");
  };
  return !gpt_at(512) && gpt_at(4096) ? 4096 : 512;
}

}  // namespace muster::wire
