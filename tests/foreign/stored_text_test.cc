// SPDX-License-Identifier: Apache-2.0
// What a store holds of machines' words, shown by the real program: people get lines that stay
// lines, programs get JSON.
#include "lifecycle/model/json.h"
#include "lifecycle/store/store.h"
#include "tests/cli/muster_folder.h"
#include "tests/foreign/foreign_text.h"

namespace muster::test {
namespace {

using lifecycle::Event;
using lifecycle::EventKind;
using lifecycle::Fact;
using lifecycle::Finding;
using lifecycle::Intent;
using lifecycle::IntentState;
using lifecycle::Subject;

constexpr WallTime kWhen{std::chrono::milliseconds(1'764'000'000'000)};
const Subject kNode{NodeName("gpu001")};

/// Everything that a command shows and that a machine, or an older or damaged store, may have said.
class ForeignWords : public ::testing::Test {
 protected:
  ForeignWords() {
    EXPECT_EQ(folder_.muster({"wipe", "gpu002", "--reason", "makes the store"}).code, 0);
    auto opened = lifecycle::openStore("sqlite:" + (folder_ / "state" / "muster.db").string());
    EXPECT_TRUE(opened);
    store_ = std::move(*opened);
  }

  void say(const std::string& words) {
    std::vector<Fact> facts;
    for (const char* facet :
         {"enrolled", "image", "os", "pool", "certificate", "inspected", "firmware.BMC",
          "driver.nvidia", "health.gpu", "hw.serial", "disk.system", "quarantine"})
      facts.push_back({kNode, FacetName(facet), words, kWhen, words, words});
    facts.push_back({kNode, FacetName("firmware." + words), words, kWhen, words, words});
    EXPECT_TRUE(store_->putFacts(facts));
    const auto console = nlohmann::json{{"console", {words, "login:"}}, {words, words}};
    add({{kNode, FacetName("image")},
         Severity::Error,
         words,
         lifecycle::canonical(console),
         words,
         kWhen,
         words});
    add({{kNode, FacetName("health." + words)},
         Severity::Warning,
         words,
         words,
         words,
         kWhen,
         words});
    add({{Subject::cluster(), FacetName("fabric.links")},
         Severity::Info,
         words,
         "",
         words,
         kWhen,
         ""});
    for (const auto kind : {EventKind::Note, EventKind::ActionFailed, EventKind::ActionProgress})
      EXPECT_TRUE(store_->addEvent(Event{0, kWhen, kind, kNode, "gpu001/" + words, words}));
    EXPECT_TRUE(store_->openRequest({"r" + std::to_string(said_), kWhen, words, words, words,
                                     std::string(64, 'a'), words, kWhen}));
    begin("done", words, true);
    begin("open", words, false);
    ++said_;
  }
  void add(const Finding& finding) { EXPECT_TRUE(store_->addFinding(finding)); }
  void begin(const std::string& name, const std::string& words, bool ends) {
    Intent intent;
    intent.id = name + std::to_string(said_);
    intent.plan_hash = std::string(64, 'a');
    intent.request = "r" + std::to_string(said_);
    intent.action.facet = {kNode, FacetName("firmware." + words)};
    intent.action.id = intent.action.facet.str();
    intent.action.phase = "firmware";
    intent.action.from = intent.action.to = intent.action.reason = words;
    intent.operation = words;
    intent.opened_at = kWhen;
    EXPECT_TRUE(store_->openIntent(intent));
    if (ends) EXPECT_TRUE(store_->closeIntent(intent.id, IntentState::Failed, words, kWhen));
  }

  /// Each command for people and for programs.
  void expectShownWell() {
    for (const auto& words : std::vector<std::vector<std::string>>{{"status"},
                                                                   {"why", "gpu001"},
                                                                   {"why", "gpu002"},
                                                                   {"why", "@cluster"},
                                                                   {"findings"},
                                                                   {"findings", "gpu001"},
                                                                   {"events"},
                                                                   {"events", "gpu001"},
                                                                   {"history"},
                                                                   {"history", "gpu001"},
                                                                   {"plan", "--no-refresh"},
                                                                   {"quarantine", "list"},
                                                                   {"bmc", "show"},
                                                                   {"firmware", "plan"},
                                                                   {"discover"},
                                                                   {"rollout", "status"}}) {
      SCOPED_TRACE(words[0] + (words.size() > 1 ? " " + words[1] : ""));
      const auto shown = folder_.muster(words);
      expectEnded(shown);
      expectPrintableLines(shown.out);
      expectPrintableLines(shown.err);
      auto as_json = words;
      as_json.emplace_back("--json");
      const auto told = folder_.muster(as_json);
      expectEnded(told);
      EXPECT_EQ(told.code, shown.code);
      expectJson(told.out);
      expectPrintableLines(told.out);
      expectPrintableLines(told.err);
    }
  }

  MusterFolder folder_;
  std::unique_ptr<lifecycle::Store> store_;
  int said_ = 0;
};

TEST_F(ForeignWords, thatWouldMoveACursorOrForgeALineAreShownAsTheyWereSaid) {
  say(harmfulWords());
  expectShownWell();
  EXPECT_THAT(folder_.muster({"findings"}).out, ::testing::HasSubstr("\\u001b[2J"))
      << "what was said is not left out";
}

TEST_F(ForeignWords, thatAreNoUtf8AreShown) {
  say(brokenWords());
  expectShownWell();
}

TEST_F(ForeignWords, areCutBetweenLetters) {
  for (std::size_t padding = 0; padding < 4; ++padding) say(longWords(padding, 500));
  expectShownWell();
}

TEST_F(ForeignWords, thatAreNestedDeepAreShownAsText) {
  constexpr std::size_t kLevels = 50'000;  // beyond what a parser that calls itself survives
  say(std::string(kLevels, '[') + std::string(kLevels, ']'));
  expectShownWell();
}

TEST_F(ForeignWords, ofKeepAreLinesToo) {
  const auto beat = nlohmann::json{{"at", toString(SystemClock().now())},
                                   {"holder", harmfulWords()},
                                   {"draining", 0},
                                   {"troubles", {harmfulWords()}}};
  ASSERT_TRUE(store_->putValue("monitor.heartbeat", beat.dump()));
  expectShownWell();
  EXPECT_THAT(folder_.muster({"status"}).out, ::testing::HasSubstr("cannot read"));
}

/// As --json shows a fact's words, a program gets them back.
TEST_F(ForeignWords, comeBackFromJsonAsTheyWereSaid) {
  auto words = harmfulWords();
  std::erase(words, '\0');  // which no store takes
  say(words);
  const auto found = nlohmann::json::parse(folder_.muster({"findings", "gpu001", "--json"}).out);
  ASSERT_FALSE(found.empty());
  for (const auto& finding : found) EXPECT_EQ(finding["text"].get<std::string>(), words);
}

}  // namespace
}  // namespace muster::test
