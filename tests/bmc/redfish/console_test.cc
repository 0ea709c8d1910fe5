// SPDX-License-Identifier: Apache-2.0
#include "bmc/redfish/console.h"
#include "bmc/redfish/json_view.h"

#include <gtest/gtest.h>

namespace muster::bmc {
namespace {

TEST(SerialConsoles, areReadWayByWayOrFromTheManagersList) {
  const auto smash = serialConsoleOf(parseLenient(
      R"({"IPMI":{"Port":623,"ServiceEnabled":true},"SSH":{"ServiceEnabled":true,"Port":"2200","ConsoleEntryCommand":"start sol","SharedWithManagerCLI":true}})"));
  EXPECT_TRUE(smash.ssh && smash.ipmi);
  EXPECT_EQ(smash.ssh_port, 2200);
  EXPECT_EQ(smash.ssh_command, "start sol");
  const auto own = serialConsoleOf(parseLenient(R"({"SSH":{"ServiceEnabled":true,"Port":2200}})"));
  EXPECT_EQ(own.ssh_command, "") << "a server of its own is the console";
  const auto shared = serialConsoleOf(parseLenient(
      R"({"SSH":{"ServiceEnabled":true,"Port":0,"SharedWithManagerCLI":true,"ConsoleEntryCommand":null}})"));
  EXPECT_EQ(shared.ssh_command, std::nullopt) << "how the command line goes on is not known";
  EXPECT_EQ(shared.ssh_port, std::nullopt) << "no port";
  EXPECT_FALSE(serialConsoleOf(parseLenient(R"({"SSH":{"ServiceEnabled":false,"Port":22}})")).ssh);
  const auto listed = listedSerialConsoleOf(
      parseLenient(R"({"ServiceEnabled":true,"ConnectTypesSupported":["SSH","IPMI","Oem"]})"));
  EXPECT_TRUE(listed.ssh && listed.ipmi);
  EXPECT_EQ(listed.ssh_command, std::nullopt);
  EXPECT_FALSE(listedSerialConsoleOf(
                   parseLenient(R"({"ServiceEnabled":false,"ConnectTypesSupported":["SSH"]})"))
                   .ssh);
  EXPECT_FALSE(listedSerialConsoleOf(
                   parseLenient(R"({"ServiceEnabled":true,"ConnectTypesSupported":"SSH"})"))
                   .ssh);
}

}  // namespace
}  // namespace muster::bmc
