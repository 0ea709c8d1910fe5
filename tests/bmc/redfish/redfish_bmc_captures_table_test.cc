// SPDX-License-Identifier: Apache-2.0
// The table "captures" of docs/bmc.md: what the client reads of each capture of a real BMC that is
// here (tests/bmc/capture.h). UPDATE_GOLDEN=1 writes the rows. Vendor and model are all that is
// shown of a machine.
#include "base/io/files.h"
#include "bmc/machine_identity.h"
#include "tests/bmc/capture.h"
#include "tests/bmc/redfish_rig.h"
#include "tests/paths.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <set>

namespace muster::bmc {
namespace {

struct TableRow {
  const char* capture;
  const char* machine;  ///< first cell
};

std::string plural(std::size_t many, const char* what) {
  return fmt::format("{} {}{}", many, what, many == 1 ? "" : "s");
}

/// Why a cell has no figures; NotFound is an answer.
std::string reasonOf(const Error& error) {
  return error.code() == ErrorCode::NotFound ? "not shown by the BMC"
                                             : fmt::format("**{}**", error.str());
}

/// "/redfish/v1/Systems/DGX/LogServices/BIOS" → "DGX".
std::string ownerOf(const std::string& log) {
  return lastSegment(log.substr(0, log.find("/LogServices")));
}

class CapturesTable : public testing::TestWithParam<TableRow> {
 protected:
  std::string identity() {
    const auto system = loop.run(bmc->system());
    if (!system) return reasonOf(system.error());
    static constexpr const char* kPlaces[] = {"system", "chassis", "BMC's card", "manager",
                                              "service"};
    std::string serial = "no serial";
    if (isRealSerial(system->serial))
      serial =
          fmt::format("serial of the {}", kPlaces[static_cast<std::size_t>(system->serial_place)]);
    const auto macs = system->macs.size() + system->boot_macs.size();
    return fmt::format("{}, {}{}", serial, plural(macs, "MAC"),
                       system->macs.empty() && macs > 0 ? " of boot options" : "");
  }
  std::string power() {
    const auto system = loop.run(bmc->system());
    if (!system) return reasonOf(system.error());
    const auto led = loop.run(bmc->locateLed());
    return fmt::format("{}{}",
                       system->power == PowerState::On    ? "on"
                       : system->power == PowerState::Off ? "off"
                                                          : "not said",
                       led ? "; LED" : "; no LED");
  }
  std::string boot() {
    const auto order = loop.run(bmc->bootOrder());
    if (!order) return reasonOf(order.error());
    std::size_t network = 0, disk = 0;
    for (const auto& option : order->options) {
      network +=
          option.starts_from == BootTarget::Pxe || option.starts_from == BootTarget::UefiHttp;
      disk += option.starts_from == BootTarget::Disk;
    }
    return fmt::format("{}: {} network, {} disk", plural(order->options.size(), "option"), network,
                       disk);
  }
  std::string firmware() {
    const auto items = loop.run(bmc->firmware());
    if (!items) return reasonOf(items.error());
    const auto fixed = std::ranges::count_if(
        *items, [](const FirmwareItem& item) { return item.updateable == false; });
    return fmt::format("{}, {} fixed", plural(items->size(), "component"), fixed);
  }
  std::string bios() {
    const auto attributes = loop.run(bmc->biosAttributes());
    return attributes ? plural(attributes->size(), "attribute") : reasonOf(attributes.error());
  }
  std::string logs() {
    const auto log = loop.run(bmc->eventLog(1'000));
    if (!log) return reasonOf(log.error());
    std::vector<std::string> names;
    for (const auto& uri : log->logs) names.push_back(ownerOf(uri) + " " + lastSegment(uri));
    std::ranges::sort(names);
    return fmt::format("{}: {}", fmt::join(names, ", "), log->entries.size());
  }
  std::string sensors() {
    constexpr int kLooks = 6;  // what takes turns has had its turn
    std::size_t readings = 0;
    for (int i = 0; i < kLooks; ++i) {
      const auto read = loop.run(bmc->sensors());
      if (!read) return reasonOf(read.error());
      readings = read->size();
    }
    return plural(readings, "reading");
  }

  test::VirtualLoop loop;
  test::FakeHttp net;
  test::RedfishRig rig{loop, net};
  std::unique_ptr<RedfishBmc> bmc;
};

TEST_P(CapturesTable, saysWhatIsRead) {
  const auto resources = test::readCapture(GetParam().capture);
  if (!resources) GTEST_SKIP() << test::noCapture(GetParam().capture);
  net.handle = test::captureHandler(*resources, true);
  bmc = rig.bmc();
  const auto begin = fmt::format("| {} |", GetParam().machine);
  const auto row = fmt::format("{} {} | {} | {} | {} | {} | {} | {} |", begin, identity(), power(),
                               boot(), firmware(), bios(), logs(), sensors());
  const auto page = test::sourceFolder() / "docs/bmc.md";
  auto text = io::readFile(page, 1u << 20);
  ASSERT_TRUE(text) << text.error().str();
  const auto at = text->find(begin);
  ASSERT_NE(at, std::string::npos) << page << " has no row " << begin << " …";
  const auto end = text->find('\n', at);
  if (const char* update = std::getenv("UPDATE_GOLDEN"); update && *update) {
    text->replace(at, end - at, row);
    ASSERT_TRUE(io::writeFileAtomic(page, *text));
    return;
  }
  EXPECT_EQ(text->substr(at, end - at), row) << "UPDATE_GOLDEN=1 writes it";
}

INSTANTIATE_TEST_SUITE_P(All, CapturesTable,
                         testing::Values(TableRow{"dell", "Dell PowerEdge (iDRAC 9)"},
                                         TableRow{"hpe", "HPE ProLiant (iLO 5)"},
                                         TableRow{"lenovo", "Lenovo ThinkSystem (XCC)"},
                                         TableRow{"supermicro", "Supermicro with HGX H100"},
                                         TableRow{"nvidia_viking", "NVIDIA DGX H100"},
                                         TableRow{"nvidia_gb200", "NVIDIA GB200"},
                                         TableRow{"nvidia_gh200", "NVIDIA GH200"},
                                         TableRow{"nvidia_gbswitch", "NVIDIA NVLink switch tray"},
                                         TableRow{"nvidia_dpu", "NVIDIA BlueField-3"}),
                         [](const auto& info) { return std::string(info.param.capture); });

}  // namespace
}  // namespace muster::bmc
