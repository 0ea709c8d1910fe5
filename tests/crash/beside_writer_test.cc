// SPDX-License-Identifier: Apache-2.0
// Readers and writers beside a process that writes, all killed with -9 at random: what any of them
// was answered is there afterwards.
//
// The writer is a program of its own on the real store (store_writer.cc), which opens it as a
// controller does; beside it run the real commands of muster on the same state folder, as an
// operator's would. MUSTER_CRASH_KILLS says how many kills: `ctest -R beside_writer_long`.
#include "gateway/node_keys.h"
#include "lifecycle/audit/audit.h"
#include "lifecycle/store/measurements.h"
#include "lifecycle/store/store.h"
#include "tests/cli/muster_folder.h"
#include "tests/lifecycle/held_locks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <poll.h>
#include <sys/wait.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <list>
#include <random>
#include <set>

namespace muster::test {
namespace {

using namespace lifecycle;
using Steady = std::chrono::steady_clock;

constexpr int kKills = 40;
constexpr int kKillsOfASite = 50;   ///< then a new state folder: commands read all of it
constexpr std::size_t kBeside = 3;  ///< commands that run at one time
constexpr int kFewestLines = 10, kMostLines = 120;  ///< of a writer's life
constexpr std::chrono::seconds kSilence{60};  ///< a writer that says nothing for so long hangs
constexpr std::chrono::milliseconds kLook{2};
constexpr std::size_t kPage = 1'000;

/// A process and what it has said on stdout.
class Child {
 public:
  Child(const std::vector<std::string>& words, const io::Command& like) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) std::abort();
    out_ = io::Fd(ends[0]);
    io::Fd in(ends[1]);
    pid_ = ::fork();
    if (pid_ != 0) return;
    std::vector<char*> argv;
    for (const auto& word : words) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    for (const auto& [name, value] : like.env) ::setenv(name.c_str(), value.c_str(), 1);
    const int null = ::open("/dev/null", O_RDWR);
    ::dup2(null, STDIN_FILENO);
    ::dup2(in.get(), STDOUT_FILENO);
    ::dup2(null, STDERR_FILENO);
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  Child(Child&&) = default;
  ~Child() {
    if (out_.valid() && !status_) kill();
  }
  pid_t pid() const { return pid_; }
  void kill() {
    ::kill(pid_, SIGKILL);
    wait(0);
  }
  /// Whether it has ended.
  bool hasEnded() { return status_ || wait(WNOHANG); }
  bool succeeded() const { return status_ && WIFEXITED(*status_) && WEXITSTATUS(*status_) == 0; }
  bool crashed() const { return status_ && WIFSIGNALED(*status_) && WTERMSIG(*status_) != SIGKILL; }
  /// Lines that are whole; `patience`: how long for the first. After its end: those that are left.
  std::vector<std::string> lines(std::chrono::milliseconds patience) {
    pollfd ready{out_.get(), POLLIN, 0};
    while (::poll(&ready, 1, static_cast<int>(patience.count())) > 0) {
      char piece[4096];
      const auto n = ::read(out_.get(), piece, sizeof piece);
      if (n <= 0) break;
      text_.append(piece, static_cast<std::size_t>(n));
      patience = std::chrono::milliseconds(0);
    }
    std::vector<std::string> out;
    for (auto end = text_.find('\n'); end != std::string::npos; end = text_.find('\n')) {
      out.push_back(text_.substr(0, end));
      text_.erase(0, end + 1);
    }
    return out;
  }

 private:
  bool wait(int how) {
    int status = 0;
    if (::waitpid(pid_, &status, how) != pid_) return false;
    status_ = status;
    return true;
  }
  io::Fd out_;
  pid_t pid_ = -1;
  std::string text_;
  std::optional<int> status_;
};

/// What somebody was told is done: kind and id.
struct Answer {
  std::string kind, id;
};

/// What a store holds, read anew by a process that wrote none of it.
class Contents {
 public:
  Contents(const std::string& url, std::vector<std::string>& wrong) : wrong_(wrong) {
    auto store = openStore(url);
    if (!store) {
      wrong_.push_back(store.error().str());
      return;
    }
    store_ = std::move(*store);
    const auto audit = verifyAudit(*store_, "");
    if (!audit || !audit->ok()) wrong_.push_back("the chain of the log is broken");
    const auto findings = store_->findings(nullptr);
    for (const auto& finding : findings.value_or(std::vector<Finding>()))
      findings_.insert(finding.text);
    const auto wipes = store_->wipeGrants();
    for (const auto& node : wipes.value_or(std::vector<NodeName>())) wipes_.insert(node.str());
    for (std::int64_t after = 0;;) {
      const auto page = store_->events(after, kPage, nullptr);
      if (!page || page->empty()) break;
      for (const auto& event : *page) events_ += event.text + "\n";
      after = page->back().sequence;
    }
    for (int number = 1;; ++number) {
      const auto record = store_->getValue(fmt::format("revocation.{}", number));
      if (!record || !*record) break;
      revocations_ += **record + "\n";
    }
    auto measurements = openMeasurements(url);
    if (!measurements) {
      wrong_.push_back(measurements.error().str());
      return;
    }
    for (const auto& set : (*measurements)->since(WallTime{}).value_or(std::vector<MeasuredSet>()))
      measured_.insert(set.node.str());
  }
  bool holds(const Answer& answer) {
    const auto& [kind, id] = answer;
    const Subject subject{NodeName(id)};
    if (!store_) return false;
    if (kind == "finding") return findings_.contains(id);
    if (kind == "wipe") return wipes_.contains(id);
    if (kind == "token")
      return store_->getValue("agent.token." + id).value_or(std::nullopt) == "used";
    if (kind == "event") return events_.find(id + "\n") != std::string::npos;
    if (kind == "measured") return measured_.contains(id);
    if (kind == "fact") return !store_->factsOf(subject).value_or(std::vector<Fact>()).empty();
    if (kind == "revoke-key") {
      const auto keys = gateway::loadKeys(*store_, NodeName(id));
      return keys && keys->ram.empty() && keys->disk.empty();
    }
    if (kind == "revocation") return revocations_.find(id + "\"") != std::string::npos;
    const auto intents = store_->intentsOf(subject, 1);
    if (!intents || intents->empty()) return false;
    return kind == "intent" || (kind == "outcome" && intents->front().state == IntentState::Done);
  }

 private:
  std::unique_ptr<Store> store_;
  std::vector<std::string>& wrong_;
  std::set<std::string> findings_, wipes_, measured_;
  std::string events_, revocations_;
};

struct Figures {
  int kills = 0, writers = 0, commands = 0, refused = 0, answered = 0, lost = 0, locks_seen = 0,
      locks_missing = 0;
};

/// One state folder and all that happens to it.
class Site {
 public:
  Site(unsigned seed, Figures& figures) : random_(seed), figures_(figures) {}

  void liveAndDie(int round) {
    const auto prefix = fmt::format("r{}", round);
    Child writer(
        {(binFolder() / "muster-store-writer").string(), url_, prefix, std::to_string(random_())},
        folder_.command({}));
    ++figures_.writers;
    std::vector<Answer> answers;
    const int enough = kFewestLines + static_cast<int>(random_() % (kMostLines - kFewestLines));
    auto heard = Steady::now();
    for (int lines = 0; lines < enough;) {
      const auto said = writer.lines(kLook);
      if (!said.empty()) heard = Steady::now();
      lines += take(said, answers);
      keepCommandsBeside(prefix, answers);
      if (lines > 0)
        ++(lockHoldersOf(file_).contains(writer.pid()) ? figures_.locks_seen
                                                       : figures_.locks_missing);
      ASSERT_FALSE(writer.hasEnded()) << "the writer has ended by itself: " << troubles_;
      ASSERT_LT(Steady::now() - heard, kSilence) << "the writer hangs";
    }
    writer.kill();
    ++figures_.kills;
    take(writer.lines(std::chrono::milliseconds(0)), answers);
    all_.insert(all_.end(), answers.begin(), answers.end());
    expectAllThere(answers);
  }

  void end() {
    std::vector<Answer> answers;
    while (!beside_.empty()) reap(answers);
    all_.insert(all_.end(), answers.begin(), answers.end());
    expectAllThere(all_);
    const auto audit = folder_.muster({"audit", "verify"});
    EXPECT_EQ(audit.code, 0) << audit.out << audit.err;
    figures_.answered += static_cast<int>(all_.size());
  }

 private:
  struct Beside {
    Child process;
    std::optional<Answer> answer;  ///< when it succeeds
    bool dies = false;
    Steady::time_point since;
  };

  /// Answers how many lines said that something is done.
  int take(const std::vector<std::string>& lines, std::vector<Answer>& answers) {
    int done = 0;
    for (const auto& line : lines) {
      const auto space = line.find(' ');
      const auto kind = line.substr(0, space);
      if (kind == "trouble") troubles_ += line + "\n";
      if (kind == "trouble") continue;
      ++done;
      if (kind != "ready") answers.push_back({kind, line.substr(space + 1)});
    }
    return done;
  }

  void keepCommandsBeside(const std::string& prefix, std::vector<Answer>& answers) {
    reap(answers);
    while (beside_.size() < kBeside)
      beside_.push_back(command(fmt::format("{}-c{}", prefix, ++commands_)));
  }

  Beside command(const std::string& tag) {
    std::vector<std::string> words;
    std::optional<Answer> answer;
    switch (random_() % 9) {
      case 0:
        words = {"status"};
        break;
      case 1:
        words = {"findings"};
        break;
      case 2:
        words = {"why", "gpu001"};
        break;
      case 3:
        words = {"history"};
        break;
      case 4:
        words = {"audit", "verify"};
        break;
      case 5:
      case 6:
        words = {"wipe", "gpu001", "--reason", tag};
        answer = Answer{"event", tag};
        break;
      case 7:
        words = {"bmc", "revoke-key", "gpu002"};
        answer = Answer{"revoke-key", "gpu002"};
        break;
      default:
        words = {"cert", "revoke", "gpu001", "--reason", tag};
        answer = Answer{"revocation", tag};
    }
    words.insert(words.begin(), (binFolder() / "muster").string());
    ++figures_.commands;
    return Beside{Child(words, folder_.command({})), std::move(answer), random_() % 3 == 0,
                  Steady::now()};
  }

  void reap(std::vector<Answer>& answers) {
    beside_.remove_if([&](Beside& each) {
      (void)each.process.lines(
          std::chrono::milliseconds(0));  // it must not wait for somebody to read
      if (!each.process.hasEnded() && each.dies && random_() % 16 == 0) {
        each.process.kill();
        ++figures_.kills;
        return true;
      }
      if (!each.process.hasEnded()) return false;
      EXPECT_FALSE(each.process.crashed());
      if (each.process.succeeded() && each.answer) answers.push_back(*each.answer);
      if (!each.process.succeeded()) ++figures_.refused;
      return true;
    });
  }

  void expectAllThere(const std::vector<Answer>& answers) {
    std::vector<std::string> wrong;
    Contents contents(url_, wrong);
    for (const auto& answer : answers)
      if (!contents.holds(answer)) {
        ++figures_.lost;
        wrong.push_back(fmt::format("{} {} was answered and is not there", answer.kind, answer.id));
      }
    EXPECT_THAT(wrong, ::testing::IsEmpty()) << troubles_;
  }

  MusterFolder folder_;
  std::string file_ = (folder_ / "state/muster.db").string();
  std::string url_ = "sqlite:" + file_;
  std::mt19937 random_;
  Figures& figures_;
  std::list<Beside> beside_;
  std::vector<Answer> all_;
  std::string troubles_;
  int commands_ = 0;
  const bool made_ = [this] {  // by muster itself, as at a site's first command
    EXPECT_EQ(folder_.muster({"wipe", "gpu001", "--reason", "first"}).code, 0);
    return true;
  }();
};

TEST(BesideWriter, whatWasAnsweredIsThereAfterKillsOfWritersAndReaders) {
  const char* wanted = std::getenv("MUSTER_CRASH_KILLS");
  const int kills = wanted ? std::atoi(wanted) : kKills;
  const char* seed = std::getenv("MUSTER_CRASH_SEED");
  const unsigned first_seed = seed ? static_cast<unsigned>(std::atoi(seed)) : 1;
  Figures figures;
  int round = 0;
  for (unsigned site_number = 0; figures.kills < kills && !::testing::Test::HasFailure();
       ++site_number) {
    SCOPED_TRACE(fmt::format("MUSTER_CRASH_SEED={}", first_seed + site_number));
    Site site(first_seed + site_number, figures);
    const int until = std::min(kills, figures.kills + kKillsOfASite);
    while (figures.kills < until && !::testing::Test::HasFailure()) site.liveAndDie(++round);
    site.end();
  }
  std::cout << fmt::format(
      "{} kills ({} of writers); {} commands beside them, {} refused; {} answered writes, {} lost; "
      "the writer's lock seen {} times, missing {} times\n",
      figures.kills, figures.writers, figures.commands, figures.refused, figures.answered,
      figures.lost, figures.locks_seen, figures.locks_missing);
  EXPECT_EQ(figures.locks_missing, 0) << "a writer runs without a lock on its store";
  EXPECT_EQ(figures.lost, 0);
  EXPECT_GE(figures.kills, kills);
}

}  // namespace
}  // namespace muster::test
