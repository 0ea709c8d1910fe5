// SPDX-License-Identifier: Apache-2.0
#include "provision/boot_log.h"

#include "base/json_input.h"
#include "base/json_output.h"
#include "lifecycle/store/store.h"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace muster::provision {
namespace {

constexpr std::string_view kRam = "ram", kDisk = "disk";  ///< then a blank and the time

class StoredBootLog final : public BootLog {
 public:
  explicit StoredBootLog(lifecycle::Store& store) : store_(store) {}

  Result<void> began(const NodeName& node, const BegunBoot& boot) override {
    return store_.putValue(keyOf(node), std::string(boot.mode == wire::Mode::Ram ? kRam : kDisk) +
                                            " " + toString(boot.at));
  }
  Result<void> ended(const NodeName& node) override { return store_.putValue(keyOf(node), ""); }
  Result<std::optional<BegunBoot>> underWay(const NodeName& node) override {
    TRY(text, store_.getValue(keyOf(node)));
    if (!text || text->empty()) return std::optional<BegunBoot>();
    const auto blank = std::min(text->find(' '), text->size() - 1);
    const auto mode = std::string_view(*text).substr(0, blank);
    const bool ram = mode == kRam;
    const auto at = parseWallTime(text->substr(blank + 1));
    if (!at || (!ram && mode != kDisk)) return corrupt(node);
    return std::optional(BegunBoot{ram ? wire::Mode::Ram : wire::Mode::Disk, *at});
  }

  Result<void> mediumGoesIn(const NodeName& node, const InsertedMedium& medium) override {
    return store_.putValue(mediumKeyOf(node), jsonText(nlohmann::json{{"urls", medium.urls},
                                                                      {"drive", medium.drive}}));
  }
  Result<void> mediumIsOut(const NodeName& node) override {
    return store_.putValue(mediumKeyOf(node), "");
  }
  Result<std::optional<InsertedMedium>> medium(const NodeName& node) override {
    TRY(text, store_.getValue(mediumKeyOf(node)));
    if (!text || text->empty()) return std::optional<InsertedMedium>();
    const auto read = parseJson(*text, kKeptJson);
    InsertedMedium medium;
    const bool right = read && read->is_object() && read->contains("urls") &&
                       read->contains("drive") && (*read)["urls"].is_array() &&
                       (*read)["drive"].is_string();
    if (right) {
      medium.drive = (*read)["drive"].get<std::string>();
      for (const auto& url : (*read)["urls"])
        if (url.is_string()) medium.urls.push_back(url.get<std::string>());
    }
    if (medium.urls.empty())
      return fail(ErrorCode::Corrupt,
                  "what the store says of the boot medium of " + node.str() + " cannot be read");
    return std::optional(std::move(medium));
  }

 private:
  static std::string mediumKeyOf(const NodeName& node) { return "boot-medium." + node.str(); }
  static std::string keyOf(const NodeName& node) { return "boot." + node.str(); }
  static std::unexpected<Error> corrupt(const NodeName& node) {
    return fail(ErrorCode::Corrupt,
                "what the store says of the last boot of " + node.str() + " cannot be read");
  }

  lifecycle::Store& store_;
};

}  // namespace

std::unique_ptr<BootLog> makeBootLog(lifecycle::Store& store) {
  return std::make_unique<StoredBootLog>(store);
}

}  // namespace muster::provision
