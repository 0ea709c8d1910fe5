// SPDX-License-Identifier: Apache-2.0
#include "base/io/process.h"
#include "base/io/files.h"
#include "tests/run_async.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <csignal>

namespace muster::io {
namespace {

using test::runAsync;
using namespace std::chrono_literals;

Command shell(const std::string& script) {
  Command command;
  command.program = "sh";
  command.args = {"-c", script};
  return command;
}

bool lives(pid_t pid) {
  const auto stat = readFile("/proc/" + std::to_string(pid) + "/stat");
  return stat && stat->find(") Z ") == std::string::npos;
}

bool endsSoon(pid_t pid) {
  for (int i = 0; i < 500 && lives(pid); ++i) ::usleep(10'000);
  return !lives(pid);
}

TEST(Process, outputInputExitAndEnvironment) {
  auto runner = makeProcessRunner();
  auto command = shell("cat; echo \"$GREETING\" >&2; pwd; exit 3");
  command.stdin_text = "from stdin\n";
  command.env["GREETING"] = "hello";
  command.working_dir = "/usr";
  auto exit = runAsync(runner->run(command));
  ASSERT_TRUE(exit) << exit.error().str();
  EXPECT_EQ(exit->code, 3);
  EXPECT_EQ(exit->out, "from stdin\n/usr\n");
  EXPECT_EQ(exit->err, "hello\n");
  EXPECT_EQ(runAsync(runner->run(shell("kill -9 $$")))->code, 137);
}

TEST(Process, argumentsArriveAsTheyAreAlsoEmptyOnes) {
  Command command;
  command.program = "sh";
  command.args = {"-c", R"(printf '%s|' "$#" "$@")", "sh", "", "a b", "\"q\"", ""};
  auto exit = runAsync(makeProcessRunner()->run(command));
  ASSERT_TRUE(exit) << exit.error().str();
  EXPECT_EQ(exit->out, "4||a b|\"q\"||");
}

TEST(Process, largeInputAndOutputDoNotBlockEachOther) {
  Command cat;
  cat.program = "cat";
  cat.stdin_text.assign(5'000'000, 'x');
  auto exit = runBlocking(cat);
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->out.size(), 5'000'000u);
  Command deaf = shell("exec <&-; true");
  deaf.stdin_text.assign(5'000'000, 'x');
  EXPECT_EQ(runBlocking(deaf)->code, 0) << "a program that does not read its input must not end us";
}

TEST(Process, missingProgramIsNotFound) {
  Command command;
  command.program = "no-such-program-here";
  EXPECT_EQ(runBlocking(command).error().code(), ErrorCode::NotFound);
  command.program = "/no/such/program";
  EXPECT_EQ(runBlocking(command).error().code(), ErrorCode::NotFound);
  command.program = "true";
  command.working_dir = "/no/such/folder";
  EXPECT_FALSE(runBlocking(command));
}

// What was wrong: root typed a command in his home, it became the services' user, and no program
// that it needs was "installed": the folder that it stood in was shut.
TEST(Process, startsInTheRootFolderWhereItsOwnIsShutToThisUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, which becomes another user";
  constexpr unsigned kNobody = 65534;
  test::TempFolder home;
  std::filesystem::permissions(home.path(), std::filesystem::perms::owner_all);
  const pid_t child = ::fork();
  if (child == 0) {
    if (::chdir(home.path().c_str()) != 0 || ::setresgid(kNobody, kNobody, kNobody) != 0 ||
        ::setresuid(kNobody, kNobody, kNobody) != 0)
      ::_exit(9);
    const auto exit = runBlocking(shell("pwd"));
    auto named = shell("true");
    named.working_dir = home.path();
    const auto refused = runBlocking(named);
    ::_exit(!exit || exit->out != "/\n" ? 1 : refused ? 2 : 0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(Process, timeoutKillsTheWholeGroup) {
  test::TempFolder folder;
  auto command = shell("sleep 1000 & echo $! > child; echo started; wait");
  command.working_dir = folder.path();
  command.timeout = 1s;
  const auto start = std::chrono::steady_clock::now();
  auto exit = runBlocking(command);
  ASSERT_FALSE(exit);
  EXPECT_EQ(exit.error().code(), ErrorCode::Timeout);
  EXPECT_LT(std::chrono::steady_clock::now() - start, 5s);
  EXPECT_TRUE(endsSoon(std::stoi(*readFile(folder / "child"))));
}

TEST(Process, orphanThatKeepsTheOutputDoesNotDelayTheAnswer) {
  const auto start = std::chrono::steady_clock::now();
  auto exit = runBlocking(shell("sleep 1000 & echo $!"));
  ASSERT_TRUE(exit);
  EXPECT_LT(std::chrono::steady_clock::now() - start, 5s);
  EXPECT_TRUE(endsSoon(std::stoi(exit->out)));
}

TEST(Process, outputIsBounded) {
  auto command = shell("yes");
  command.max_output_bytes = 100'000;
  auto exit = runBlocking(command);
  ASSERT_FALSE(exit);
  EXPECT_EQ(exit.error().code(), ErrorCode::Internal);
}

TEST(Process, otherChildrenAreLeftAlone) {
  const pid_t other = ::fork();
  if (other == 0) ::_exit(42);
  EXPECT_TRUE(runBlocking(shell("true")));
  int status = 0;
  ASSERT_EQ(::waitpid(other, &status, 0), other) << "somebody else reaped our child";
  EXPECT_EQ(WEXITSTATUS(status), 42);
}

TEST(Process, descriptorsAreNotInherited) {
  Fd open_file(::open("/etc/passwd", O_RDONLY));  // no O_CLOEXEC, as a library would
  auto exit = runBlocking(shell("ls /proc/self/fd | wc -l"));
  ASSERT_TRUE(exit);
  EXPECT_EQ(std::stoi(exit->out), 4) << "0, 1, 2 and ls's own";
}

TEST(Process, checkedQuotesStderr) {
  auto answer = runChecked(shell("echo no space left >&2; exit 5"));
  ASSERT_FALSE(answer);
  EXPECT_NE(answer.error().str().find("code 5: no space left"), std::string::npos);
  EXPECT_EQ(*runChecked(shell("echo fine")), "fine\n");
}

TEST(Daemon, isTerminatedAndItsOutputKept) {
  test::TempFolder folder;
  auto runner = makeProcessRunner();
  auto child = runner->start(shell("echo up; exec sleep 1000"), folder / "log");
  ASSERT_TRUE(child) << child.error().str();
  EXPECT_TRUE((*child)->running());
  const auto pid = (*child)->pid();
  (*child)->terminate(5s);
  EXPECT_FALSE((*child)->running());
  EXPECT_FALSE(lives(pid));
  auto stubborn =
      runner->start(shell("trap '' TERM; echo up; while :; do sleep 0.1; done"), folder / "log");
  while (readFile(folder / "log")->find("up") == std::string::npos) ::usleep(1000);
  (*stubborn)->terminate(100ms);
  EXPECT_FALSE((*stubborn)->running());
}

TEST(Daemon, diesWithItsParent) {
  test::TempFolder folder;
  const auto pid_file = folder / "pid";
  const pid_t parent = ::fork();
  if (parent == 0) {
    auto child = makeProcessRunner()->start(shell("exec sleep 1000"), {});
    const auto text = std::to_string((*child)->pid());
    (void)writeFileAtomic(pid_file, text);
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  ::waitpid(parent, &status, 0);
  EXPECT_TRUE(endsSoon(std::stoi(*readFile(pid_file))));
}

TEST(PidFile, knowsTheProcessAndNotItsSuccessor) {
  test::TempFolder folder;
  auto runner = makeProcessRunner();
  const auto pid = runner->startDetached(shell("exec sleep 1000"), folder / "log");
  ASSERT_TRUE(pid);
  const PidFile file{folder / "daemon.pid"};
  ASSERT_TRUE(file.write(*pid));
  EXPECT_EQ(file.alive(), *pid);
  const auto recorded = *readFile(file.path);

  // The same pid with another start time is another process: it must neither be reported nor ended.
  auto fields = recorded;
  fields.replace(fields.find(' ') + 1,
                 fields.find(' ', fields.find(' ') + 1) - fields.find(' ') - 1, "12345");
  ASSERT_TRUE(writeFileAtomic(file.path, fields));
  EXPECT_EQ(file.alive(), std::nullopt);
  EXPECT_TRUE(file.terminate(1s));
  EXPECT_TRUE(lives(*pid));

  ASSERT_TRUE(writeFileAtomic(file.path, recorded));
  EXPECT_TRUE(file.terminate(5s));
  EXPECT_FALSE(lives(*pid));
  EXPECT_FALSE(std::filesystem::exists(file.path));
  EXPECT_TRUE(file.terminate(1s)) << "nothing to end is fine";
  ASSERT_TRUE(writeFileAtomic(file.path, "junk"));
  EXPECT_EQ(file.alive(), std::nullopt);
  EXPECT_FALSE(PidFile{folder / "x"}.write(0x7fffffff));
}

}  // namespace
}  // namespace muster::io
