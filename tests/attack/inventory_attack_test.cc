// SPDX-License-Identifier: Apache-2.0
// Inventories that somebody sends by mail: `muster inventory check` must say what is wrong, soon,
// in bounded memory, and by no signal.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <fstream>

#include "base/io/process.h"
#include "tests/paths.h"
#include "tests/run_async.h"

namespace muster::attack {
namespace {

constexpr std::chrono::seconds kCheckLimit{20};
constexpr std::size_t kAddressSpaceKib = 2u << 20;  ///< of the checking process: 2 GiB

const std::string kHead =
    "cluster: {name: small}\nnetworks:\n  provisioning: {cidr: 10.20.0.0/16}\ncredentials:\n  bmc: "
    "{username: admin, password: {env: PASSWORD}}\nprofiles:\n  p: {expect: {gpus: 8}}\n";

class AttackInventory : public ::testing::Test {
 protected:
  /// `muster inventory check` in a bounded address space. Answers its exit status and what it
  /// printed.
  io::ProcessExit check(const std::string& text) {
    std::ofstream(folder_ / "cluster.yaml", std::ios::binary) << text;
    return checkFile();
  }
  io::ProcessExit checkFile() {
    io::Command command{
        "sh",
        {"-c", fmt::format("ulimit -v {}; exec \"$0\" inventory check", kAddressSpaceKib),
         (test::binFolder() / "muster").string()}};
    command.env = {{"MUSTER_INVENTORY", (folder_ / "cluster.yaml").string()},
                   {"MUSTER_STATE", (folder_ / "state").string()},
                   {"HOME", folder_.path().string()}};
    command.timeout = kCheckLimit;
    auto ended = io::runBlocking(command);
    return ended ? std::move(*ended) : io::ProcessExit{-1, "", ended.error().str()};
  }
  static std::string times(std::string_view piece, std::size_t count) {
    std::string out;
    for (; count > 0; --count) out += piece;
    return out;
  }
  void expectRefused(const std::string& what, const std::string& text) {
    const auto ended = check(text);
    EXPECT_GT(ended.code, 0) << what << ": " << ended.err.substr(0, 300);
    EXPECT_LT(ended.code, 128) << what << " ended it by a signal: " << ended.err.substr(0, 300);
    EXPECT_FALSE((ended.out + ended.err).empty()) << what;
  }

  test::TempFolder folder_;
};

TEST_F(AttackInventory, depthIsRefused) {
  expectRefused("lists in lists", kHead + "nodes: " + times("[", 100'000) + times("]", 100'000));
  expectRefused("maps in maps", kHead + "nodes: " + times("{a: ", 50'000));
  expectRefused("dashes", kHead + "nodes:\n" + times("- ", 50'000) + "x\n");
}

TEST_F(AttackInventory, aliasesThatMultiplyAreRefused) {
  std::string laughs = kHead + "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i)
    laughs +=
        fmt::format("a{}: &a{} [{}*a{}]\n", i, i, times(fmt::format("*a{}, ", i - 1), 9), i - 1);
  expectRefused("a billion laughs", laughs + "nodes: *a11\n");
  expectRefused("a list that holds itself", kHead + "nodes: &a [*a, *a]\n");
}

TEST_F(AttackInventory, whatIsNoTextIsRefused) {
  expectRefused("NUL", kHead + std::string("nodes: \0 x", 10));
  expectRefused("no UTF-8", kHead + "nodes:\n  - {names: \"gpu\xff\xfe[1-2]\", profile: p}\n");
  std::string bytes;
  for (int i = 0; i < 200'000; ++i) bytes += static_cast<char>(i * 7919 >> 3);
  expectRefused("bytes", bytes);
  expectRefused("nothing", "");
}

TEST_F(AttackInventory, whatIsHugeIsRefused) {
  expectRefused("a scalar of 10 MB", kHead + "nodes: " + std::string(10'000'000, 'x') + "\n");
  expectRefused("a name of 1 MB",
                kHead + "nodes:\n  - {names: " + std::string(1'000'000, 'x') + ", profile: p}\n");
  expectRefused("a hostlist beyond all bounds",
                kHead + "nodes:\n  - {names: \"n[1-999999999]\", profile: p}\n");
  expectRefused("hostlists that multiply",
                kHead + "nodes:\n  - {names: \"n[1-9999]a[1-9999]b[1-9999]\", profile: p}\n");
  expectRefused(
      "100,000 keys of nobody", kHead + [] {
        std::string all;
        for (int i = 0; i < 100'000; ++i) all += fmt::format("k{}: 1\n", i);
        return all;
      }());
}

TEST_F(AttackInventory, tablesThatAreNoneAreRefused) {
  const auto with_rows =
      kHead + "nodes:\n  - {names: \"gpu[001-002]\", profile: p, from: rows.csv}\n";
  for (const auto& rows : {std::string("name,mac,bmc\n\"gpu001,52:54:00:00:00:01,10.20.1.1\n"),
                           std::string("name,mac,bmc\n") + std::string(10'000'000, 'x') + "\n",
                           std::string("\0\0\0\0", 4), std::string(1'000'000, '"'),
                           std::string("name\n") + std::string(2'000'000, ',')}) {
    std::ofstream(folder_ / "rows.csv", std::ios::binary) << rows;
    expectRefused(fmt::format("a table that begins with {:?}", rows.substr(0, 20)), with_rows);
  }
}

}  // namespace
}  // namespace muster::attack
