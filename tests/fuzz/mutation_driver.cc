// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/mutation_driver.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "base/io/files.h"
#include "base/log.h"

namespace muster::fuzz {
namespace {

using Steady = std::chrono::steady_clock;

constexpr std::size_t kMostInputBytes = 64u << 10;
constexpr std::chrono::milliseconds kLookEvery{20};
[[maybe_unused]] constexpr rlim_t kMostMemoryBytes =
    rlim_t{4} << 30;  ///< of a child; an input has at most 64 KiB
constexpr std::size_t kMutatedBytes =
    4u << 10;  ///< larger entries are tried as they are: they would take all the time
constexpr std::size_t kMostMutations = 8;  ///< one on the other

/// What child and parent share: the input that is being tried.
struct Present {
  volatile std::uint64_t tried = 0;
  volatile std::size_t size = 0;
  char input[kMostInputBytes] = {};
};

class Mutator {
 public:
  Mutator(const Target& target, std::vector<std::string> corpus, unsigned long long seed)
      : target_(target), replayed_(std::move(corpus)), engine_(seed) {
    for (const auto& entry : replayed_)
      if (entry.size() <= kMutatedBytes) corpus_.push_back(entry);
    if (corpus_.empty()) corpus_ = replayed_;
  }

  std::string next() {
    if (next_ < replayed_.size()) return replayed_[next_++];
    std::string text = corpus_[below(corpus_.size())];
    for (std::size_t more = below(kMostMutations) + 1; more > 0; --more) mutate(text);
    text.resize(std::min(text.size(), std::min(target_.max_input_bytes, kMostInputBytes)));
    return text;
  }

 private:
  std::size_t below(std::size_t limit) {
    return std::uniform_int_distribution<std::size_t>(0, limit - 1)(engine_);
  }
  std::size_t place(const std::string& text) { return below(text.size() + 1); }
  char anyByte() {
    static constexpr std::string_view kEnds("\x00\x01\x7f\x80\xff\"\\{}[]:,\n\r -", 18);
    return below(2) == 0 ? kEnds[below(kEnds.size())] : static_cast<char>(below(256));
  }

  void mutate(std::string& text) {
    switch (below(10)) {
      case 0:
        if (!text.empty()) text[below(text.size())] = anyByte();
        break;
      case 1:
        if (!text.empty()) text[below(text.size())] ^= static_cast<char>(1 << below(8));
        break;
      case 2:
        text.insert(place(text), 1 + below(8), anyByte());
        break;
      case 3:
        if (const auto at = place(text); at < text.size())
          text.erase(at, 1 + below(std::min<std::size_t>(64, text.size() - at)));
        break;
      case 4:
        text.resize(place(text));
        break;
      case 5:
        if (!target_.words.empty())
          text.insert(place(text), target_.words[below(target_.words.size())]);
        break;
      case 6: {  // a part once more
        const auto from = place(text);
        text.insert(place(text), text.substr(from, 1 + below(128)));
        break;
      }
      case 7: {  // the end of another one
        const auto& other = corpus_[below(corpus_.size())];
        text = text.substr(0, place(text)) + other.substr(place(other));
        break;
      }
      case 8: {  // another number
        static constexpr std::string_view kNumbers[] = {"0",
                                                        "-1",
                                                        "1e308",
                                                        "255",
                                                        "256",
                                                        "65536",
                                                        "4294967296",
                                                        "9223372036854775807",
                                                        "9223372036854775808",
                                                        "18446744073709551615",
                                                        "18446744073709551616"};
        const auto at = text.find_first_of("0123456789", place(text));
        if (at == std::string::npos) break;
        const auto end = std::min(text.find_first_not_of("0123456789", at), text.size());
        text.replace(at, end - at, kNumbers[below(std::size(kNumbers))]);
        break;
      }
      default: {  // depth
        static constexpr std::string_view kOpen[] = {"[", "{\"a\":", "- ", "{a: ", "(", "<"};
        const auto open = kOpen[below(std::size(kOpen))];
        std::string nest;
        for (std::size_t depth = below(below(8) == 0 ? 8'000 : 64) + 1; depth > 0; --depth)
          nest += open;
        text.insert(place(text), nest);
      }
    }
  }

  const Target& target_;
  const std::vector<std::string> replayed_;
  std::vector<std::string> corpus_;  ///< what is mutated
  std::mt19937_64 engine_;
  std::size_t next_ = 0;  ///< to be tried as it is
};

std::vector<std::string> corpusOf(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  std::error_code missing;
  for (const auto& entry : std::filesystem::directory_iterator(folder, missing))
    files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::vector<std::string> out;
  for (const auto& file : files) {
    std::ifstream in(file, std::ios::binary);
    out.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  return out;
}

void boundMemory() {
#if !__has_feature(address_sanitizer)
  const rlimit bound{kMostMemoryBytes, kMostMemoryBytes};
  (void)::setrlimit(RLIMIT_AS, &bound);
#endif
}

[[noreturn]] void work(const Target& target, Mutator mutator, Present& present,
                       std::chrono::milliseconds share) {
  startLog({}, LogLevel::Error);
  boundMemory();
  const auto until = Steady::now() + share;
  while (Steady::now() < until) {
    const auto input = mutator.next();
    std::memcpy(present.input, input.data(), input.size());
    present.size = input.size();
    present.tried = present.tried + 1;
    target.run(input);
  }
  ::_exit(0);
}

/// Of the processor, that a child has had: on a busy machine it is no hang to have had none.
/// Nothing for one that is no more.
std::chrono::nanoseconds usedBy(pid_t child) {
  clockid_t clock;
  timespec used{};
  if (::clock_getcpuclockid(child, &clock) != 0 || ::clock_gettime(clock, &used) != 0) return {};
  return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
}

/// Answers what is wrong; empty: nothing.
std::string waitFor(pid_t child, const Present& present, const Limits& limits) {
  auto moved = Steady::now();
  auto used = usedBy(child);
  std::uint64_t tried = 0;
  const auto end = [child](std::string why) {
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    return why;
  };
  while (true) {
    int status = 0;
    if (::waitpid(child, &status, WNOHANG) == child) {
      if (WIFSIGNALED(status))
        return fmt::format("ended by signal {} ({})", WTERMSIG(status),
                           ::strsignal(WTERMSIG(status)));
      return WEXITSTATUS(status) == 0 ? std::string()
                                      : fmt::format("ended with {}", WEXITSTATUS(status));
    }
    if (present.tried != tried) {
      tried = present.tried;
      moved = Steady::now();
      used = usedBy(child);
    }
    if (usedBy(child) - used > limits.processor)
      return end(fmt::format("one input used the processor for more than {}", limits.processor));
    if (Steady::now() - moved > limits.wall)
      return end(fmt::format("one input took longer than {}", limits.wall));
    std::this_thread::sleep_for(kLookEvery);
  }
}

}  // namespace

bool tryTarget(const Target& target, const std::filesystem::path& corpus,
               std::chrono::milliseconds share, unsigned long long seed, const Limits& limits) {
  auto inputs = corpusOf(corpus / target.name);
  if (inputs.empty()) {
    fmt::print(stderr, "{}: no corpus in {}\n", target.name, (corpus / target.name).string());
    return false;
  }
  for (const auto& input : inputs)
    if (input.size() > kMostInputBytes)
      return fmt::print(stderr, "{}: a corpus entry is too large\n", target.name), false;
  void* shared =
      ::mmap(nullptr, sizeof(Present), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return false;
  auto& present = *new (shared) Present;
  const pid_t child = ::fork();
  if (child == 0) work(target, Mutator(target, std::move(inputs), seed), present, share);
  const auto trouble =
      child < 0 ? std::string("no child process") : waitFor(child, present, limits);
  fmt::print("{:<12} {:>9} inputs{}\n", target.name, std::uint64_t{present.tried},
             trouble.empty() ? "" : ": " + trouble);
  std::fflush(stdout);
  if (!trouble.empty()) {
    const auto file = fmt::format("fuzz-{}-{}", target.name, std::uint64_t{present.tried});
    std::ofstream(file, std::ios::binary)
        .write(present.input, static_cast<std::streamsize>(present.size));
    fmt::print(stderr,
               "{}: the input lies in {}; once it is understood, keep it in tests/fuzz/corpus/{}\n",
               target.name, std::filesystem::absolute(file).string(), target.name);
  }
  ::munmap(shared, sizeof(Present));
  return trouble.empty();
}

}  // namespace muster::fuzz
