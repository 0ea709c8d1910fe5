// SPDX-License-Identifier: Apache-2.0
// Nested a thousand and a hundred thousand deep, at each door: an error, never a signal.
#include "base/json_output.h"
#include "bmc/redfish/json_view.h"
#include "wire/messages.h"
#include "wire/pack_index.h"
#include "wire/partition_table.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace muster {
namespace {

struct Door {
  const char* name;
  bool (*refuses)(const std::string& text);
};

class NestedJson : public testing::TestWithParam<Door> {};

TEST_P(NestedJson, isRefused) {
  for (const std::size_t levels : {1'000u, 100'000u}) {
    const std::string nested = std::string(levels, '[') + std::string(levels, ']');
    EXPECT_TRUE(GetParam().refuses(nested)) << levels;
    EXPECT_TRUE(GetParam().refuses(R"({"signature":"x","format":)" + nested + "}")) << levels;
    std::string objects;
    for (std::size_t i = 0; i < levels; ++i) objects += R"({"a":)";
    EXPECT_TRUE(GetParam().refuses(objects + "1" + std::string(levels, '}'))) << levels;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Doors, NestedJson,
    testing::Values(
        Door{"poll", [](const std::string& text) { return !wire::parsePollRequest(text); }},
        Door{"enrolment", [](const std::string& text) { return !wire::parseEnrollRequest(text); }},
        Door{"reports", [](const std::string& text) { return !wire::parseReports(text); }},
        Door{"hardware", [](const std::string& text) { return !wire::parseHardware(text); }},
        Door{"checks", [](const std::string& text) { return !wire::parseCheckResults(text); }},
        Door{"packIndexBeforeItsSignature",
             [](const std::string& text) { return !wire::openIndex(text, "", ""); }},
        Door{"packIndexUnsigned", [](const std::string& text) { return !wire::readIndex(text); }},
        Door{"sfdisk",
             [](const std::string& text) {
               return wire::readPartitionTable(text).partitions.empty();
             }},
        Door{"redfish", [](const std::string& text) { return bmc::parseLenient(text).is_null(); }}),
    [](const auto& row) { return row.param.name; });

TEST(ServiceMessage, isCutBetweenLetters) {
  for (std::size_t padding = 396; padding < 402; ++padding) {
    const nlohmann::json body{{"error", {{"message", std::string(padding, 'x') + "機機機機"}}}};
    const auto message = bmc::serviceMessage(body);
    EXPECT_LE(message.size(), 400 + std::string_view("…").size());
    EXPECT_NO_THROW((void)nlohmann::json(message).dump()) << padding;  // the strict printer
  }
}

}  // namespace
}  // namespace muster
