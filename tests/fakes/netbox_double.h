// SPDX-License-Identifier: Apache-2.0
// netbox/netbox_double.py as a child, with a site that a test writes.
#pragma once

#include "base/io/files.h"
#include "base/io/process.h"
#include "base/json_output.h"
#include "tests/paths.h"
#include "tests/run_async.h"

#include <nlohmann/json.hpp>

#include <fmt/format.h>

#include <memory>
#include <string>
#include <thread>

namespace muster::test {

class NetboxDouble {
 public:
  static constexpr const char* kToken = "0123456789abcdef0123456789abcdef01234567";

  NetboxDouble() {
    site["token"] = kToken;
    site["devices"] = nlohmann::json::array();
    save();
    io::Command command;
    command.program = "python3";
    command.args = {(sourceFolder() / "tests/fakes/netbox/netbox_double.py").string(),
                    (folder_ / "site.json").string()};
    auto started = processes_->start(command, folder_ / "log");
    if (started) child_ = std::move(*started);
    for (int i = 0; i < 3'000 && port_.empty(); ++i) {
      const auto log = io::readFile(folder_ / "log", 4096);
      if (log && log->ends_with('\n')) port_ = log->substr(0, log->find('\n'));
      if (port_.empty()) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }
  std::string url() const { return "http://127.0.0.1:" + port_; }
  /// What `site` says counts from now on.
  void save() {
    if (const auto written = io::writeFileAtomic(folder_ / "site.json", jsonText(site)); !written)
      throw std::runtime_error(written.error().str());
  }
  /// A device as people draw it: gpu001 in rack r1, boots from eno1, with a BMC.
  static nlohmann::json device(int number) {
    return {{"name", fmt::format("gpu{:03}", number)},
            {"site", "hall-2"},
            {"tags", {"gpu"}},
            {"rack", "r1"},
            {"position", 8.0 + 2 * number},
            {"serial", fmt::format("SN{}", number)},
            {"primary", fmt::format("10.20.1.{}/16", number)},
            {"oob", fmt::format("10.20.250.{}/16", number)},
            {"interfaces",
             {{{"name", "eno1"},
               {"mac", fmt::format("52:54:00:20:00:{:02X}", number)},
               {"addresses", {fmt::format("10.20.1.{}/16", number)}},
               {"peer", {"leaf1", fmt::format("swp{}", number)}}},
              {{"name", "ib0"}, {"addresses", {fmt::format("10.40.1.{}/16", number)}}},
              {{"name", "bmc"},
               {"mgmt_only", true},
               {"mac", fmt::format("52:54:00:30:00:{:02X}", number)},
               {"addresses", {fmt::format("10.20.250.{}/16", number)}}}}}};
  }

  nlohmann::json site;

 private:
  TempFolder folder_;
  std::unique_ptr<io::ProcessRunner> processes_ = io::makeProcessRunner();
  std::unique_ptr<io::Child> child_;
  std::string port_;
};

}  // namespace muster::test
