// SPDX-License-Identifier: Apache-2.0
// Random damage to the example: load must answer, whatever it reads. Meant to run under ASan and
// UBSan, too.
#include "inventory/model/cluster.h"
#include "tests/inventory/inventory_fixture.h"
#include "tests/paths.h"

#include <random>

namespace muster::inventory {
namespace {

constexpr int kYamlRounds = 2000;
constexpr int kCsvRounds = 500;

/// Changes a few bytes, or moves, doubles or drops a stretch of text.
class Mutator {
 public:
  explicit Mutator(unsigned seed) : random_(seed) {}

  std::string mutate(std::string text) {
    for (std::size_t n = 1 + below(4); n > 0 && !text.empty(); --n) {
      std::size_t at = below(text.size()),
                  length = 1 + below(std::min<std::size_t>(40, text.size() - at));
      switch (below(7)) {
        case 0:
          text[at] = static_cast<char>(below(256));
          break;
        case 1:
          text.erase(at, length);
          break;
        case 2:
          text.insert(below(text.size()), text.substr(at, length));
          break;
        case 3:
          text.insert(at, kWords[below(kWords.size())]);
          break;
        case 4:
          text.replace(at, length, kWords[below(kWords.size())]);
          break;
        case 5:
          text.resize(at);
          break;
        default:
          std::swap(text[at], text[below(text.size())]);
          break;
      }
    }
    return text;
  }

 private:
  std::size_t below(std::size_t n) {
    return std::uniform_int_distribution<std::size_t>(0, n - 1)(random_);
  }

  inline static const std::vector<std::string> kWords{"{",
                                                      "}",
                                                      "[",
                                                      "]",
                                                      ":",
                                                      ": ",
                                                      ",",
                                                      "\n",
                                                      "\n  ",
                                                      "- ",
                                                      "&a ",
                                                      "*a",
                                                      "!!str ",
                                                      "! ",
                                                      "? ",
                                                      "| ",
                                                      "> ",
                                                      "\"",
                                                      "'",
                                                      "#",
                                                      "<<: *a",
                                                      "---\n",
                                                      "...\n",
                                                      "%YAML 1.2\n",
                                                      "\t",
                                                      "\r\n",
                                                      "~",
                                                      "null",
                                                      "true",
                                                      "0x7fff",
                                                      "-1",
                                                      "99999999999999999999",
                                                      "1e999",
                                                      ".nan",
                                                      "gpu[1-99999]",
                                                      "gpu[",
                                                      "[]",
                                                      "{}",
                                                      "{a: {b: {c: [[[]]]}}}",
                                                      "\xef\xbb\xbf",
                                                      "\xff",
                                                      "\xc3",
                                                      std::string(1, '\0'),
                                                      "\x04",
                                                      "10.20.0.0/0",
                                                      "0.0.0.0/33",
                                                      "file",
                                                      "names",
                                                      "from: racks.csv",
                                                      "from: ..",
                                                      "nodes",
                                                      "provisioning",
                                                      "https://",
                                                      "@",
                                                      "é"};
  std::mt19937 random_;
};

class Mutation : public InventoryTest {
 protected:
  void SetUp() override {
    InventoryTest::SetUp();
    std::filesystem::path example = test::sourceFolder() / "examples/lab";
    yaml_ = read(example / "cluster.yaml");
    csv_ = read(example / "racks.csv");
    write("racks.csv", csv_);
  }

  /// Holds for every answer: a cluster or a reason, all places inside the files' folder, and views
  /// that can be printed.
  void look(const Loaded& loaded, const std::string& input) {
    EXPECT_NE(loaded.cluster.has_value(), loaded.diagnostics.hasErrors()) << input;
    EXPECT_FALSE(checkText(loaded).empty());
    EXPECT_FALSE(checkJson(loaded).empty()) << input;
    if (!loaded.cluster) {
      ++refused_;
      return;
    }
    ++accepted_;
    EXPECT_EQ(loaded.cluster->digest.size(), 64u);
    EXPECT_FALSE(toJson(*loaded.cluster).empty());
    EXPECT_FALSE(showText(*loaded.cluster).empty());
    for (const Node& node : loaded.cluster->nodes)
      EXPECT_EQ(loaded.cluster->findNode(node.name), &node) << input;
  }

  std::string yaml_, csv_;
  int accepted_ = 0, refused_ = 0;
};

TEST_F(Mutation, noYamlCrashesLoad) {
  ASSERT_TRUE(loadYaml(yaml_).cluster) << checkText(loadYaml(yaml_));
  Mutator mutator(2027);
  for (int round = 0; round < kYamlRounds; ++round) {
    std::string text = mutator.mutate(yaml_);
    SCOPED_TRACE(round);
    look(loadText(text, folder_ / "cluster.yaml"), text);
  }
  EXPECT_GT(refused_, kYamlRounds / 3);
  EXPECT_GT(accepted_, kYamlRounds / 50)
      << "damage that is always fatal tests the YAML parser only";
}

TEST_F(Mutation, noCsvCrashesLoad) {
  Mutator mutator(7);
  for (int round = 0; round < kCsvRounds; ++round) {
    std::string text = mutator.mutate(csv_);
    write("racks.csv", text);
    SCOPED_TRACE(round);
    look(loadYaml(yaml_), text);
  }
  EXPECT_GT(refused_, 0);
  EXPECT_GT(accepted_, 0);
}

}  // namespace
}  // namespace muster::inventory
