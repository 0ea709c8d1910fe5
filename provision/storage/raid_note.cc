// SPDX-License-Identifier: Apache-2.0
#include "provision/storage/raid_note.h"

#include "base/json_input.h"
#include "base/json_output.h"

#include <nlohmann/json.hpp>

#include <array>

namespace muster::provision {

namespace {

constexpr std::array<const char*, 4> kRestarts = {"none", "due", "off", "on"};

}  // namespace

std::string RaidNote::str() const {
  return jsonText(nlohmann::json{{"raid", volume},
                                 {"deletes", deletes},
                                 {"answered", answered},
                                 {"task", task},
                                 {"before", before},
                                 {"restart", kRestarts[static_cast<std::size_t>(restart)]},
                                 {"since", since},
                                 {"data", data_allowed}});
}

Result<std::optional<RaidNote>> RaidNote::parse(const std::string& operation) {
  if (operation.empty()) return std::nullopt;
  const auto json = jsonOrNone(operation, kKeptJson);
  try {
    RaidNote note;
    note.volume = json.at("raid");
    note.deletes = json.at("deletes");
    note.answered = json.at("answered");
    note.task = json.at("task");
    note.before = json.at("before");
    note.since = json.at("since");
    note.data_allowed = json.at("data");
    const std::string word = json.at("restart");
    for (std::size_t i = 0; i < kRestarts.size(); ++i)
      if (word == kRestarts[i]) {
        note.restart = static_cast<Restart>(i);
        return note;
      }
  } catch (const nlohmann::json::exception&) {  // said below
  }
  return fail(ErrorCode::Corrupt,
              "the journal's operation \"" + operation + "\" is not one of RAID work");
}

}  // namespace muster::provision
