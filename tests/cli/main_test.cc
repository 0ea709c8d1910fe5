// SPDX-License-Identifier: Apache-2.0
// The program as people and scripts meet it: exit codes, what goes to which stream, what is left in
// the state folder.
#include "tests/cli/muster_folder.h"

#include <nlohmann/json.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

namespace muster::test {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class CliTest : public ::testing::Test {
 protected:
  /// A store that knows the nodes only by a wipe permission: something has been done, nothing was
  /// seen.
  void makeStore() {
    ASSERT_EQ(folder_.muster({"wipe", "gpu002", "--reason", "returned from repair"}).code, kOk);
  }

  MusterFolder folder_;
};

TEST_F(CliTest, outputThatCouldNotBeWrittenIsAFailure) {
  auto command = folder_.command({"--help"});
  command.args = {"-c", "exec \"$0\" --help > /dev/full", command.program};
  command.program = "sh";
  const auto ended = io::runBlocking(command);
  ASSERT_TRUE(ended) << ended.error().str();
  EXPECT_EQ(ended->code, kFailed);
  EXPECT_THAT(ended->err, HasSubstr("of the output could be written"));
}

/// Closed is not a pipe whose reader has enough: nobody has read anything.
TEST_F(CliTest, aClosedOutputIsAFailureOfWhatPrints) {
  const auto run = [this](const std::string& script) {
    auto command = folder_.command({"--version"});
    command.args = {"-c", script, command.program};
    command.program = "sh";
    auto ended = io::runBlocking(command);
    return ended ? std::move(*ended) : io::ProcessExit{-1, "", ended.error().str()};
  };
  const auto closed = run("exec \"$0\" --version >&-");
  EXPECT_EQ(closed.code, kFailed);
  EXPECT_THAT(closed.err, HasSubstr("of the output could be written"));
  EXPECT_EQ(run("exec \"$0\" --version > /dev/null").code, kOk);
  EXPECT_EQ(run("exec \"$0\" no-such-word >&-").code, kUsage) << "it prints on standard error";
}

TEST_F(CliTest, unknownWordsAreUsageErrors) {
  EXPECT_EQ(folder_.muster({}).code, kUsage);
  EXPECT_EQ(folder_.muster({"provision-everything"}).code, kUsage);
  EXPECT_EQ(folder_.muster({"why"}).code, kUsage) << "why needs a node";
  EXPECT_EQ(folder_.muster({"--help"}).code, kOk);
}

/// A variable that a script did not set must not stand for all nodes.
TEST_F(CliTest, noArgumentIsEmptyOrHoldsALineBreak) {
  makeStore();
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"apply", ""},
                                             {"apply", "--nodes", ""},
                                             {"cert", "revoke", "", "--reason", "x"},
                                             {"bmc", "trust", "reset", ""},
                                             {"audit", "verify", "--head", ""},
                                             {"wipe", "gpu001", "--reason", ""},
                                             {"--allow-path", "", "inventory", "check"}}) {
    const auto ended = folder_.muster(words);
    EXPECT_EQ(ended.code, kUsage) << words.front();
    EXPECT_THAT(ended.err + ended.out, HasSubstr("must not be empty")) << words.front();
  }
  EXPECT_EQ(folder_.muster({"plan", "--nodes="}).code, kUsage);
  EXPECT_EQ(folder_.muster({"quarantine", "add", "gpu001", "--reason", "  "}).code, kUsage);
  const auto forged =
      folder_.muster({"quarantine", "add", "gpu001", "--reason", "fan\ngpu002  root  all is well"});
  EXPECT_EQ(forged.code, kUsage);
  EXPECT_THAT(forged.err + forged.out, HasSubstr("must not hold line breaks"));
  const auto endless =
      folder_.muster({"quarantine", "add", "gpu001", "--reason", std::string(100'000, 'x')});
  EXPECT_EQ(endless.code, kUsage);
  EXPECT_THAT(endless.err + endless.out, HasSubstr("must not be longer than 2000 bytes"));
}

TEST_F(CliTest, aStoreOfShortCommandsThatIsLostIsNoNewOne) {
  ASSERT_EQ(folder_.muster({"quarantine", "add", "gpu001", "--reason", "fan"}).code, kOk);
  for (const bool emptied : {true, false}) {
    for (const char* suffix : {"-wal", "-shm", ""})
      std::filesystem::remove(folder_ / ("state/muster.db" + std::string(suffix)));
    if (emptied) folder_.write("state/muster.db", "");
    for (const std::vector<std::string>& words :
         std::vector<std::vector<std::string>>{{"quarantine", "list"},
                                               {"audit", "verify"},
                                               {"status"},
                                               {"why", "gpu001"},
                                               {"events"},
                                               {"cert", "verify"},
                                               {"quarantine", "add", "gpu002", "--reason", "x"}}) {
      const auto refused = folder_.muster(words);
      EXPECT_NE(refused.code, kOk) << words.front();
      EXPECT_THAT(refused.err, HasSubstr("its folder was in use")) << words.front();
    }
  }
}

TEST_F(CliTest, theVersionIsPrinted) {
  const auto said = folder_.muster({"--version"});
  EXPECT_EQ(said.code, kOk);
  EXPECT_THAT(said.out, testing::StartsWith("muster 0."));
}

TEST_F(CliTest, aWatchEndsOnASignal) {
  makeStore();
  for (const char* signal : {"TERM", "INT"}) {
    auto command = folder_.command({"status", "--watch"});
    command.args = {
        "-c",
        "set -m; \"$0\" status --watch >out & until grep -q gpu001 out; do sleep 0.05; done; "
        "kill -" +
            std::string(signal) + " $!; wait $!",
        command.program};
    command.program = "bash";
    command.timeout = std::chrono::seconds(30);
    const auto ended = io::runBlocking(command);
    ASSERT_TRUE(ended) << signal << ": " << ended.error().str();
    EXPECT_GT(ended->code, 128) << signal;
  }
}

/// `muster status --watch | head -1` must not go on for ever, nor clear a screen that is a file.
TEST_F(CliTest, aWatchEndsWhenNobodyReadsIt) {
  makeStore();
  auto command = folder_.command({});
  command.args = {"-c",
                  "set -o pipefail; \"$0\" status --watch | grep -q -m1 gpu001; "
                  "echo ended; \"$0\" status --watch >out & "
                  "until grep -q gpu002 out; do sleep 0.05; done; kill $!; wait; "
                  "tr -d '[:print:]\\n' <out | wc -c",
                  command.program};
  command.program = "bash";
  command.timeout = std::chrono::seconds(60);
  const auto ended = io::runBlocking(command);
  ASSERT_TRUE(ended) << ended.error().str();
  EXPECT_EQ(ended->out, "ended\n0\n") << ended->err;
}

TEST_F(CliTest, statusAndWhyTakeNodesAndFilters) {
  makeStore();
  const auto all = folder_.muster({"status"});
  EXPECT_THAT(all.out, testing::StartsWith("2 nodes: 2 declared\n")) << "the summary first";
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"status", "gpu002"}, {"status", "--rack", "r1", "gpu002"}}) {
    const auto one = folder_.muster(words);
    EXPECT_EQ(one.code, kOk) << one.err;
    EXPECT_THAT(one.out, AllOf(HasSubstr("gpu002"), Not(HasSubstr("gpu001"))));
  }
  EXPECT_EQ(folder_.muster({"status", "--state", "in pool"}).out.substr(0, 16),
            "no node matches\n");
  EXPECT_THAT(folder_.muster({"status", "--rack", "r9"}).err, HasSubstr("is in rack 'r9'"));
  EXPECT_THAT(folder_.muster({"status", "--profile", "gpu"}).err, HasSubstr("it has: gpu-node"));
  EXPECT_THAT(folder_.muster({"status", "--state", "/var/lib/muster"}).err,
              HasSubstr("muster --state FOLDER"));
  const auto why = folder_.muster({"why", "gpu[001-002]"});
  EXPECT_EQ(why.code, kOk) << why.err;
  EXPECT_THAT(why.out, AllOf(HasSubstr("2 nodes, 1 different answers"),
                             HasSubstr("gpu[001-002]: declared: enrolled is not as declared")));
  const auto both = json::parse(folder_.muster({"why", "--rack", "r1", "--json"}).out);
  ASSERT_EQ(both.size(), 2u);
  EXPECT_EQ(both[1]["subject"], "gpu002");
}

TEST_F(CliTest, aPlanIsGroupedAndBeginsWithWhatItDoes) {
  makeStore();
  const auto plan = folder_.muster({"plan", "--no-refresh"});
  ASSERT_EQ(plan.code, kOk) << plan.err;
  EXPECT_THAT(plan.out, AllOf(testing::ContainsRegex("^[0-9]+ actions on 2 subjects"),
                              HasSubstr("gpu[001-002]  (2 nodes)\n  enrolled "),
                              Not(HasSubstr("\ngpu001\n"))));
  EXPECT_THAT(folder_.muster({"plan", "--no-refresh", "--expand"}).out,
              AllOf(HasSubstr("\ngpu001\n"), HasSubstr("\ngpu002\n")));
  EXPECT_EQ(folder_.muster({"plan", "--no-refresh", "--detailed-exitcode"}).code, 2);
}

TEST_F(CliTest, linesOfEventsHaveADate) {
  makeStore();
  EXPECT_THAT(folder_.muster({"events", "gpu002"}).out,
              testing::MatchesRegex("[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}Z gpu002 .*\n"));
}

TEST_F(CliTest, personsDrainsAreListedAndOverridden) {
  makeStore();
  EXPECT_THAT(folder_.muster({"pool", "holds"}).out, HasSubstr("no person has drained a node"));
  const auto refused = folder_.muster({"pool", "override", "gpu001", "--reason", "x"});
  EXPECT_EQ(refused.code, kFailed);
  EXPECT_THAT(refused.err, HasSubstr("nothing was overridden"));
  EXPECT_EQ(folder_.muster({"pool", "override", "gpu001"}).code, kUsage) << "no reason";
}

TEST_F(CliTest, errorsAreJsonWhereJsonIsAskedFor) {
  makeStore();
  const auto failed = folder_.muster({"why", "gpu009", "--json"});
  EXPECT_EQ(failed.code, kFailed);
  EXPECT_EQ(json::parse(failed.out)["error"]["code"], "not found");
  EXPECT_THAT(failed.err, HasSubstr("gpu009 is not in the inventory")) << "people see it, too";
  const auto usage = folder_.muster({"--json", "stauts"});
  EXPECT_EQ(usage.code, kUsage);
  EXPECT_THAT(json::parse(usage.out)["error"]["text"].get<std::string>(),
              HasSubstr("did you mean `muster status`?"));
  EXPECT_THAT(folder_.muster({"stauts"}).err, HasSubstr("did you mean `muster status`?"));
}

TEST_F(CliTest, commandsThatChangeSomethingSpeakJsonToo) {
  makeStore();
  const auto added = folder_.muster({"quarantine", "add", "gpu001", "--reason", "fan", "--json"});
  ASSERT_EQ(added.code, kOk) << added.err;
  EXPECT_EQ(json::parse(added.out)[0]["added"], true);
  const auto removed =
      folder_.muster({"--json", "quarantine", "remove", "gpu001", "--reason", "new fan"});
  ASSERT_EQ(removed.code, kOk) << removed.err;
  EXPECT_EQ(json::parse(removed.out)["node"], "gpu001");
  const auto verified = folder_.muster({"cert", "verify", "--json"});
  EXPECT_EQ(verified.code, kFailed);
  ASSERT_EQ(json::parse(verified.out).size(), 2u);
  EXPECT_EQ(json::parse(verified.out)[1]["valid"], false);
  const auto exported = folder_.muster({"cert", "export", "--json"});
  ASSERT_EQ(exported.code, kOk) << exported.err;
  EXPECT_EQ(json::parse(exported.out)["certificates"], 0);
  const auto key = folder_.muster({"key", "show", "certificates", "--json"});
  ASSERT_EQ(key.code, kOk) << key.err;
  EXPECT_THAT(json::parse(key.out)["public_pem"].get<std::string>(), HasSubstr("PUBLIC KEY"));
  EXPECT_THAT(
      json::parse(folder_.muster({"--json", "--version"}).out)["version"].get<std::string>(),
      HasSubstr("muster"));
}

TEST_F(CliTest, whatWasDoneIsJsonWhereJsonIsAskedFor) {
  makeStore();
  const auto said = [this](std::vector<std::string> words) {
    words.insert(words.begin(), "--json");
    const auto ended = folder_.muster(words);
    EXPECT_EQ(ended.code, kOk) << words[1] << ' ' << words[2] << ": " << ended.out << ended.err;
    auto out = json::parse(ended.out, nullptr, false);
    EXPECT_FALSE(out.is_discarded()) << words[1] << ' ' << words[2] << ": " << ended.out;
    return out;
  };
  EXPECT_EQ(said({"wipe", "gpu[001-002]", "--reason", "new"})["nodes"].size(), 2u);
  EXPECT_EQ(said({"bmc", "trust", "reset", "gpu001"})[0]["node"], "gpu001");
  EXPECT_EQ(said({"bmc", "auth", "reset", "gpu001"})[0]["done"], true);
  EXPECT_EQ(said({"bmc", "certificate", "gpu001"})[0]["signer"], "");
  EXPECT_TRUE(said({"monitor", "--acknowledge", "--reason", "looked"}).empty());
  EXPECT_THAT(said({"image", "key"})["public_pem"].get<std::string>(), HasSubstr("PUBLIC KEY"));
  EXPECT_EQ(said({"image", "gc"})["removed"], false);
  EXPECT_EQ(said({"image", "verify"}), json::array());
  const auto rotated = said({"key", "rotate", "audit"});
  EXPECT_EQ(rotated["verifies"].size(), 2u);
  EXPECT_EQ(said({"key", "rotate", "audit", "--finish"})["purpose"], "audit");
  const auto token = said({"token", "create", "wall"});
  EXPECT_EQ(said({"token", "revoke", token["id"].get<std::string>()})["revoked"], true);
  EXPECT_EQ(said({"firmware", "retry", "gpu001", "--reason", "x", "--direct"})[0]["components"], 0);
}

TEST_F(CliTest, aStateThatNoNodeIsEverInIsRefused) {
  makeStore();
  const auto refused = folder_.muster({"status", "--state", "in-pool"});
  EXPECT_EQ(refused.code, kFailed);
  EXPECT_THAT(refused.err, HasSubstr("in pool, quarantined"));
  EXPECT_EQ(folder_.muster({"status", "--state", "declared"}).code, kOk);
}

TEST_F(CliTest, namesForCompletionComeFromTheInventory) {
  EXPECT_EQ(folder_.muster({"completion", "words", "nodes"}).out, "gpu001\ngpu002\n");
  EXPECT_EQ(folder_.muster({"completion", "words", "profiles"}).out, "gpu-node\n");
  EXPECT_EQ(folder_.muster({"completion", "words", "racks"}).out, "r1\n");
  EXPECT_THAT(folder_.muster({"completion", "bash"}).out, HasSubstr("complete -F _muster muster"));
  EXPECT_THAT(folder_.muster({"man", "bmc"}).out, HasSubstr(".TH MUSTER-BMC 1"));
  EXPECT_EQ(folder_.muster({"man", "nosuch"}).code, kFailed);
}

/// The first sentence of many on metal: which key, and which command.
TEST_F(CliTest, anAddressThatTheHostLacksIsNamedWithItsKey) {
  const auto plan = folder_.muster({"plan"});
  EXPECT_EQ(plan.code, kFailed);
  EXPECT_THAT(plan.err, AllOf(HasSubstr("networks.provisioning.controller"),
                              HasSubstr("`ip address add 10.20.0.1/16 dev INTERFACE`")));
}

TEST_F(CliTest, oldNamesAreRefusedWithTheNewOne) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> renamed{
      {{"keep"}, "muster keep is now muster monitor"},
      {{"keep", "--acknowledge", "--reason", "x"}, "muster keep is now muster monitor"},
      {{"quarantine", "hold", "gpu001", "--reason", "x"},
       "muster quarantine hold is now muster quarantine add"},
      {{"quarantine", "lift", "gpu001"}, "is now muster quarantine remove"},
      {{"bmc", "forget-pin", "gpu001"}, "muster bmc forget-pin is now muster bmc trust reset"},
      {{"bmc", "forget-refusal", "gpu001"}, "is now muster bmc auth reset"},
      {{"console", "gpu001", "--take"}, "--take is now --force"},
      {{"bmc", "power", "gpu001", "off", "--even-in-pool"}, "--even-in-pool is now --force"},
      {{"validate", "isolate", "--least-gbits", "5"}, "--least-gbits is now --min-gbps"},
      {{"validate", "run", "--nodes", "gpu001", "--together"},
       "--together is now --synchronized-load"},
      {{"rollout", "start", "--nodes", "gpu001", "--when-unclear", "go-on"},
       "--when-unclear is now --on-inconclusive"},
      {{"fabric", "marking", "--mtu", "9000"}, "is now muster fabric qos-check"}};
  for (const auto& [words, now] : renamed) {
    const auto ended = folder_.muster(words);
    EXPECT_EQ(ended.code, kUsage) << words[0] << ' ' << words.back();
    EXPECT_THAT(ended.err, HasSubstr(now));
  }
  EXPECT_FALSE(std::filesystem::exists(folder_ / "state")) << "nothing was done";
}

TEST_F(CliTest, goodInventoryIsAcceptedAndShown) {
  EXPECT_EQ(folder_.muster({"inventory", "check"}).code, kOk);
  const auto shown = folder_.muster({"inventory", "show", "--json"});
  ASSERT_EQ(shown.code, kOk) << shown.err;
  EXPECT_EQ(json::parse(shown.out)["nodes"].size(), 2u);
  EXPECT_THAT(shown.out, Not(HasSubstr("calvin"))) << "secrets are never shown";
}

TEST_F(CliTest, everyMistakeIsReportedAtOnceWithItsPlace) {
  std::string text(MusterFolder::kInventory);
  text.replace(text.find("images:"), 7, "imagse:");
  text.replace(text.find("10.20.1.2,"), 10, "10.20.1.1,");
  folder_.write("cluster.yaml", text);
  const auto checked = folder_.muster({"inventory", "check"});
  EXPECT_EQ(checked.code, kFailed);
  EXPECT_THAT(checked.out, AllOf(HasSubstr("cluster.yaml:6:1: error: "), HasSubstr("images"),
                                 HasSubstr("cluster.yaml:12:")));
}

TEST_F(CliTest, looksOnlyAndLeavesNothingWhereNothingWasDone) {
  for (const auto& words : {std::vector<std::string>{"status"},
                            {"why", "gpu001"},
                            {"plan", "--no-refresh"},
                            {"cert", "verify"}}) {
    const auto ended = folder_.muster(words);
    EXPECT_EQ(ended.code, kFailed) << words[0];
    EXPECT_THAT(ended.err, HasSubstr("nothing has been done yet")) << words[0];
    EXPECT_THAT(ended.err, HasSubstr("muster plan")) << words[0];
    EXPECT_FALSE(std::filesystem::exists(folder_ / "state")) << words[0];
  }
}

TEST_F(CliTest, plansFromStoredFactsWithoutStartingAnything) {
  makeStore();
  const auto first =
      folder_.muster({"plan", "--no-refresh", "--json", "--out", (folder_ / "plan.json").string()});
  ASSERT_EQ(first.code, kOk) << first.err;
  const auto plan = json::parse(first.out);
  std::vector<std::string> ids;
  for (const auto& action : plan["actions"]) ids.push_back(action["id"]);
  EXPECT_THAT(ids, ::testing::IsSupersetOf(
                       {"gpu001/enrolled", "gpu001/image", "gpu002/enrolled", "gpu002/image"}));
  EXPECT_EQ(json::parse(folder_.muster({"plan", "--no-refresh", "--json"}).out)["hash"],
            plan["hash"]);
  EXPECT_FALSE(folder_.wasLocked()) << "only those that observe or act take the lock";
  EXPECT_FALSE(std::filesystem::exists(folder_ / "state/run/netboot"));
}

TEST_F(CliTest, savedPlanThatWasAlteredIsRefusedBeforeAnythingStarts) {
  makeStore();
  ASSERT_EQ(
      folder_.muster({"plan", "--no-refresh", "--out", (folder_ / "plan.json").string()}).code,
      kOk);
  std::ifstream in(folder_ / "plan.json");
  auto plan = json::parse(in);
  plan["actions"][0]["to"] = "something else";
  folder_.write("plan.json", plan.dump());
  const auto ended = folder_.muster({"apply", (folder_ / "plan.json").string()});
  EXPECT_EQ(ended.code, kFailed);
  EXPECT_THAT(ended.err, AllOf(HasSubstr("plan.json"), HasSubstr("hash")));
  EXPECT_FALSE(folder_.wasLocked());
}

TEST_F(CliTest, savedPlanOfAnotherInventoryIsRefusedBeforeAnythingStarts) {
  makeStore();
  ASSERT_EQ(
      folder_.muster({"plan", "--no-refresh", "--out", (folder_ / "plan.json").string()}).code,
      kOk);
  std::string text(MusterFolder::kInventory);
  text.replace(text.find("gpus: 8"), 7, "gpus: 4");
  folder_.write("cluster.yaml", text);
  const auto ended = folder_.muster({"apply", (folder_ / "plan.json").string()});
  EXPECT_EQ(ended.code, kFailed);
  EXPECT_THAT(ended.err, AllOf(HasSubstr("inventory"), HasSubstr("muster plan --out")));
  EXPECT_FALSE(folder_.wasLocked());
}

TEST_F(CliTest, savedPlanAndNodesExcludeEachOther) {
  const auto ended = folder_.muster({"apply", "plan.json", "--nodes", "gpu001"});
  EXPECT_EQ(ended.code, kFailed);
  EXPECT_THAT(ended.err, HasSubstr("name its nodes when it is made"));
}

TEST_F(CliTest, nodesThatNobodyDeclaredAreNamed) {
  makeStore();
  EXPECT_THAT(folder_.muster({"why", "gpu009"}).err, HasSubstr("gpu009 is not in the inventory"));
  EXPECT_THAT(folder_.muster({"plan", "--no-refresh", "--nodes", "gpu[001-003]"}).err,
              HasSubstr("gpu003 is not in the inventory"));
  const auto wipe = folder_.muster({"wipe", "gpu[001-003]", "--reason", "new disks"});
  EXPECT_EQ(wipe.code, kFailed);
  EXPECT_THAT(wipe.err, HasSubstr("nothing was allowed"));
}

TEST_F(CliTest, aWipeSaysWhetherItIsForDataToo) {
  const auto system = folder_.muster({"wipe", "gpu001", "--reason", "new image"});
  ASSERT_EQ(system.code, kOk) << system.err;
  EXPECT_THAT(system.out, testing::Not(HasSubstr("storage sets is wiped")));
  const auto data = folder_.muster({"wipe", "gpu001", "--data", "--reason", "new raid"});
  ASSERT_EQ(data.code, kOk) << data.err;
  EXPECT_THAT(data.out, HasSubstr("storage sets is wiped too"));
  EXPECT_THAT(folder_.muster({"events", "gpu001"}).out,
              HasSubstr("with the data of its storage sets: new raid"));
}

TEST_F(CliTest, stateIsTheSameForPeopleAndMachines) {
  makeStore();
  const auto status = folder_.muster({"status", "--json"});
  ASSERT_EQ(status.code, kOk) << status.err;
  const auto rows = json::parse(status.out);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0]["node"], "gpu001");
  EXPECT_THAT(folder_.muster({"status"}).out,
              AllOf(HasSubstr("gpu001"), HasSubstr(rows[0]["state"].get<std::string>())));
  const auto why = json::parse(folder_.muster({"why", "gpu001", "--json"}).out);
  EXPECT_EQ(why["facet"], "enrolled") << "the first goal of all";
}

TEST_F(CliTest, whereThereIsNoNodeNothingIsVerified) {
  makeStore();
  const std::string inventory(MusterFolder::kInventory);
  folder_.write("cluster.yaml", inventory.substr(0, inventory.find("\nnodes:") + 1));
  const auto verified = folder_.muster({"cert", "verify"});
  EXPECT_NE(verified.code, 0) << verified.out;
  EXPECT_THAT(verified.err, HasSubstr("nothing was verified: no node is declared"));
}

TEST_F(CliTest, nodesWithoutACertificateAreVoid) {
  makeStore();
  const auto verified = folder_.muster({"cert", "verify"});
  EXPECT_EQ(verified.code, kFailed);
  EXPECT_THAT(verified.out, AllOf(HasSubstr("gpu001: VOID"), HasSubstr("gpu002: VOID")));
}

TEST_F(CliTest, whoAllowedAWipeIsInTheLog) {
  makeStore();
  EXPECT_THAT(folder_.muster({"events", "gpu002"}).out, HasSubstr("returned from repair"));
  EXPECT_THAT(folder_.muster({"events", "gpu001"}).out, IsEmpty());
  const auto unknown = folder_.muster({"events", "gpu01"});
  EXPECT_NE(unknown.code, 0);
  EXPECT_THAT(unknown.err, HasSubstr("no event names gpu01"));
  EXPECT_EQ(folder_.muster({"audit", "verify"}).code, kOk);
}

TEST_F(CliTest, nothingIsErasedByAWordThatIsNotTheNodes) {
  makeStore();
  const auto other =
      folder_.muster({"erase", "gpu001", "--confirm", "gpu002", "--reason", "leaves"});
  EXPECT_NE(other.code, kOk);
  EXPECT_THAT(other.err, AllOf(HasSubstr("gpu002 is not the name of the node"),
                               HasSubstr("nothing was done")));
  EXPECT_THAT(folder_.muster({"erase", "gpu001", "--confirm", "gpu001"}).err,
              HasSubstr("--reason is missing"));
  EXPECT_THAT(folder_.muster({"erase", "gpu009"}).err, HasSubstr("gpu009 is not in the inventory"));
  EXPECT_THAT(folder_.muster({"erase", "gpu001", "--report"}).err, HasSubstr("was never erased"));
  EXPECT_THAT(folder_.muster({"history"}).out, Not(HasSubstr("erased")));
  EXPECT_THAT(folder_.muster({"erase", "gpu001", "--cancel", "--confirm", "gpu001"}).err,
              HasSubstr("leave out --confirm"));
  EXPECT_THAT(folder_.muster({"erase", "gpu001", "--cancel"}).err,
              HasSubstr("no erasure of gpu001 is requested"));
}

TEST_F(CliTest, aKeyIsRevokedOfADeclaredNodeOnly) {
  makeStore();
  EXPECT_THAT(folder_.muster({"bmc", "revoke-key", "gpu009"}).err,
              HasSubstr("gpu009 is not in the inventory"));
  EXPECT_THAT(folder_.muster({"bmc", "revoke-key", "gpu001"}).out, HasSubstr("muster wipe gpu001"));
  EXPECT_THAT(folder_.muster({"bmc", "forget-key", "gpu001"}).out, HasSubstr("presents next"));
}

TEST_F(CliTest, passwordsOfTheStoreAreNotRepeated) {
  const auto ended =
      folder_.muster({"--store", "postgresql://muster:sesame@127.0.0.1:1/muster", "status"});
  EXPECT_EQ(ended.code, kFailed);
  EXPECT_THAT(ended.out + ended.err, Not(HasSubstr("sesame")));
}

}  // namespace
}  // namespace muster::test
