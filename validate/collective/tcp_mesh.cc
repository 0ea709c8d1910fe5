// SPDX-License-Identifier: Apache-2.0
// Collectives over TCP: every rank has a stream to every other one. Rings for what is reduced or
// gathered, as NCCL does it; steps of exchanges for an all-to-all. For hosts without GPUs, and for
// seeing the whole chain work where there is neither GPU nor RDMA.
#include "base/io/process.h"
#include "validate/collective/collective.h"
#include "validate/collective/tcp_roll_call.h"
#include "validate/collective/tcp_streams.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>

namespace muster::collective {
namespace {

constexpr std::uint64_t kMagic = 0x6873656d2d706374;  ///< "tcp-mesh"
constexpr std::size_t kOtherDescriptors = 64;

/// How ranks know each other: another job's rank, or a port scanner, is none of ours.
struct Hello {
  std::uint64_t magic = kMagic, job = 0;
  std::int32_t rank = -1, port = 0;
  std::int64_t left_ms = 0;  ///< of rank 0, in the list that it sends: until its limit
  char address[48] = {};     ///< where this rank listens, as text
};
static_assert(std::is_trivially_copyable_v<Hello>);

class TcpRank final : public Communicator {
 public:
  TcpRank(const Job& job, int rank)
      : rank_(rank),
        ranks_(job.ranks),
        job_(jobNumber(job)),
        end_(StreamClock::now() + job.limit),
        addresses_(static_cast<std::size_t>(job.ranks)),
        streams_(static_cast<std::size_t>(job.ranks)) {}

  /// Rank 0 is met first; with its list everybody calls those before him and is called by those
  /// after him.
  Result<void> join(const Job& job) {
    const auto colon = job.meeting.rfind(':');
    host_ = job.meeting.substr(0, colon);
    std::from_chars(job.meeting.data() + colon + 1, job.meeting.data() + job.meeting.size(), port_);
    TRY(listener, listenAt(rank_ == 0 ? port_ : 0));
    listener_ = std::move(listener);
    address_ = host_;
    std::vector<Hello> table(static_cast<std::size_t>(ranks_));
    if (rank_ == 0) {
      TRY_OK(acceptFrom(listener_.get(), table));
      table[0].left_ms =
          std::chrono::floor<std::chrono::milliseconds>(end_ - StreamClock::now()).count();
      for (int other = 1; other < ranks_; ++other)
        TRY_OK(sendAll(stream(other), table.data(), table.size() * sizeof(Hello), end_));
      keepAddresses(table);
      return {};
    }
    TRY(first, connectTo(host_, port_, end_));
    TRY(own, ownAddress(first.get()));
    TRY(own_port, portOf(listener_.get()));
    address_ = own;
    streams_[0] = std::move(first);
    TRY_OK(greet(0, own_port));
    if (auto told = receiveAll(stream(0), table.data(), table.size() * sizeof(Hello), end_); !told)
      return fail(std::move(told.error())
                      .within("rank 0 sent no list of the ranks: it waits for one that is "
                              "missing, and its report names that one"));
    roll_call_ends_ = StreamClock::now() +
                      std::chrono::milliseconds(std::clamp<std::int64_t>(
                          table[0].left_ms, 0, std::chrono::milliseconds(job.limit).count())) +
                      kRollCall + kAnswered;
    for (int other = 1; other < rank_; ++other) {
      auto& known = table[static_cast<std::size_t>(other)];
      known.address[sizeof known.address - 1] = '\0';
      if (known.magic != kMagic || known.job != job_)
        return fail(ErrorCode::Conflict, "the other side runs another job");
      TRY(called, connectTo(known.address, known.port, end_));
      streams_[static_cast<std::size_t>(other)] = std::move(called);
      TRY_OK(greet(other, own_port));
    }
    TRY_OK(acceptFrom(listener_.get(), table));
    keepAddresses(table);
    return {};
  }

  std::string device() const override { return address_; }

  Result<std::uint64_t> check(const Step& step, std::uint64_t seed) override {
    input_.resize(step.shape.input),
        output_.assign(step.shape.output,
                       std::numeric_limits<float>::quiet_NaN());  // what nobody writes is wrong
    for (std::uint64_t i = 0; i < step.shape.input; ++i) input_[i] = inputValue(seed, rank_, i);
    TRY_OK(once(step));
    std::uint64_t wrong = 0;
    const int whose = step.operation == Operation::Pair ? step.peer : rank_;
    for (std::uint64_t i = 0; i < step.shape.output; ++i)
      wrong +=
          !(output_[i] == outputValue(step.operation, seed, whose, ranks_, step.shape.count, i));
    return wrong;
  }

  /// The median: a host that runs something else for a moment must not look like a bad way.
  Result<double> time(const Step& step, int iterations) override {
    std::vector<double> took;
    for (int i = 0; i < iterations; ++i) {
      const auto begin = StreamClock::now();
      TRY_OK(once(step));
      took.push_back(std::chrono::duration<double>(StreamClock::now() - begin).count());
    }
    const auto middle = took.begin() + iterations / 2;
    std::nth_element(took.begin(), middle, took.end());
    return *middle;
  }

 private:
  int stream(int rank) const { return streams_[static_cast<std::size_t>(rank)].get(); }
  Result<void> greet(int rank, int port) const {
    const auto hello = helloOf(port);
    return sendAll(stream(rank), &hello, sizeof hello, end_);
  }
  Hello helloOf(int port) const {
    Hello hello;
    hello.job = job_, hello.rank = rank_, hello.port = port;
    std::memcpy(hello.address, address_.data(),
                std::min(address_.size(), sizeof hello.address - 1));
    return hello;
  }

  /// Those after this one that have no stream.
  std::string whoIsMissing() const {
    std::vector<std::string> missing;
    for (int other = rank_ + 1; other < ranks_; ++other)
      if (stream(other) < 0) missing.push_back(fmt::format("rank {}", other));
    return someOf(std::move(missing)) +
           " did not connect: not started, cut off, or with another job";
  }

  /// All ranks after this one. Unknown peers are sent away; the same rank twice is an error.
  Result<void> acceptFrom(int listener, std::vector<Hello>& table) {
    for (int left = ranks_ - 1 - rank_; left > 0;) {
      auto came = acceptOne(listener, end_);
      if (!came) return fail(std::move(came.error()).within(whoIsMissing()));
      Hello hello;
      if (!receiveAll(came->get(), &hello, sizeof hello,
                      std::min(end_, StreamClock::now() + kUnknownPeerTimeout)) ||
          hello.magic != kMagic || hello.job != job_)
        continue;
      if (hello.rank <= rank_ || hello.rank >= ranks_ || stream(hello.rank) >= 0)
        return fail(ErrorCode::Conflict, fmt::format("rank {} connected twice, or is not one of {}",
                                                     hello.rank, ranks_));
      table[static_cast<std::size_t>(hello.rank)] = hello;
      streams_[static_cast<std::size_t>(hello.rank)] = std::move(*came);
      --left;
    }
    return {};
  }

  Result<void> once(const Step& step) {
    const auto n = step.shape.count;
    switch (step.operation) {
      case Operation::AllReduce:
        return allReduce();
      case Operation::AllGather:
        std::copy_n(input_.begin(), n, output_.begin() + at(rank_, n));
        return gatherRing(n);
      case Operation::ReduceScatter:
        return reduceScatter(n);
      case Operation::AllToAll:
        return allToAll(n);
      case Operation::SendRecv:
        return exchange(next(), input_.data(), n, before(), output_.data(), n);
      case Operation::Pair:
        return exchange(step.peer, input_.data(), n, step.peer, output_.data(), n);
    }
    return {};
  }

  int next() const { return (rank_ + 1) % ranks_; }
  int before() const { return (rank_ + ranks_ - 1) % ranks_; }
  static std::ptrdiff_t at(int part, std::uint64_t n) {
    return static_cast<std::ptrdiff_t>(static_cast<std::uint64_t>(part) * n);
  }
  Result<void> exchange(int to, const float* out, std::uint64_t sent, int from, float* in,
                        std::uint64_t received) {
    std::size_t missing = 0;
    auto done = exchangeAll(stream(to), out, sent * sizeof(float), stream(from), in,
                            received * sizeof(float), end_, &missing);
    if (done) {
      ++exchanges_;
      return {};
    }
    const int other = missing > 0 ? from : to;
    auto error =
        std::move(done.error())
            .within(fmt::format("{} rank {} ({})", missing > 0 ? "waiting for" : "sending to",
                                other, addresses_[static_cast<std::size_t>(other)]));
    // Who ends lets the next one end: only together do they know who was first. Its streams tell
    // the neighbours at once, and who does not answer is the one.
    const bool has_closed = error.code() != ErrorCode::Timeout;
    if (has_closed) {
      for (auto& each : streams_) each = Socket();
      roll_call_ends_ = std::min(roll_call_ends_, StreamClock::now() + kRollCall + kAnswered);
    }
    const auto said = rollCall(other);
    // A rank 0 that was through before somebody closed a stream is accused of nothing.
    if (!said && has_closed && other != 0) return fail(std::move(error));
    return fail(std::move(error).within(
        said ? *said
             : fmt::format("rank 0 ({}) does not answer the roll call: it has ended, is stopped, "
                           "or is cut off",
                           host_)));
  }

  /// Who stands still, as far as the ranks can tell each other.
  /// Errors: rank 0 does not answer
  Result<std::string> rollCall(int waits_for) const {
    const RankStatus own{rank_, waits_for, exchanges_};
    if (rank_ == 0)
      return takeRollCall(listener_.get(), job_, own, ranks_, addresses_,
                          StreamClock::now() + kRollCall);
    return answerRollCall(host_, port_, job_, own, roll_call_ends_);
  }

  void keepAddresses(const std::vector<Hello>& table) {
    for (int rank = 0; rank < ranks_; ++rank) {
      const auto& known = table[static_cast<std::size_t>(rank)];
      addresses_[static_cast<std::size_t>(rank)] =
          rank == 0 ? host_
          : rank == rank_
              ? address_
              : std::string(known.address, ::strnlen(known.address, sizeof known.address));
    }
  }

  /// Parts of equal size in output_, of which each rank has its own.
  Result<void> gatherRing(std::uint64_t n) {
    for (int step = 0; step + 1 < ranks_; ++step) {
      const int mine = (rank_ - step + ranks_) % ranks_,
                theirs = (rank_ - step - 1 + 2 * ranks_) % ranks_;
      TRY_OK(exchange(next(), output_.data() + at(mine, n), n, before(),
                      output_.data() + at(theirs, n), n));
    }
    return {};
  }

  /// Leaves the sum of part `rank` in sum_, whose parts of n elements hold this rank's input.
  Result<void> reduceRing(std::uint64_t n) {
    part_.resize(n);
    for (int step = 0; step + 1 < ranks_; ++step) {
      const int away = (rank_ - step - 1 + 2 * ranks_) % ranks_,
                here = (rank_ - step - 2 + 3 * ranks_) % ranks_;
      TRY_OK(exchange(next(), sum_.data() + at(away, n), n, before(), part_.data(), n));
      float* to = sum_.data() + at(here, n);
      for (std::uint64_t i = 0; i < n; ++i) to[i] += part_[i];
    }
    return {};
  }

  Result<void> reduceScatter(std::uint64_t n) {
    sum_ = input_;
    TRY_OK(reduceRing(n));
    std::copy_n(sum_.begin() + at(rank_, n), n, output_.begin());
    return {};
  }

  /// Reduced in parts, then gathered; the last part is filled up with zeros.
  Result<void> allReduce() {
    const auto all = input_.size(),
               n = (all + static_cast<std::size_t>(ranks_) - 1) / static_cast<std::size_t>(ranks_);
    sum_ = input_;
    sum_.resize(n * static_cast<std::size_t>(ranks_));
    TRY_OK(reduceRing(n));
    output_.swap(sum_);
    TRY_OK(gatherRing(n));
    output_.resize(all);
    return {};
  }

  Result<void> allToAll(std::uint64_t n) {
    std::copy_n(input_.begin() + at(rank_, n), n, output_.begin() + at(rank_, n));
    for (int step = 1; step < ranks_; ++step) {
      const int to = (rank_ + step) % ranks_, from = (rank_ - step + ranks_) % ranks_;
      TRY_OK(exchange(to, input_.data() + at(to, n), n, from, output_.data() + at(from, n), n));
    }
    return {};
  }

  static constexpr std::chrono::seconds kUnknownPeerTimeout{
      5};  ///< for a hello; who says nothing is none of ours
  static constexpr std::chrono::seconds kAnswered{1};  ///< for what rank 0 tells after a roll call
  const int rank_, ranks_;
  const std::uint64_t job_;
  const StreamClock::time_point end_;
  StreamClock::time_point roll_call_ends_ = end_ + kRollCall + kAnswered;
  std::string host_;  ///< where the ranks meet
  int port_ = 0;
  Socket listener_;  ///< of rank 0 for the roll call, too
  std::string address_;
  std::vector<std::string> addresses_;  ///< by rank
  std::uint64_t exchanges_ = 0;         ///< done
  std::vector<Socket> streams_;
  std::vector<float> input_, output_, sum_, part_;
};

}  // namespace

Result<std::unique_ptr<Communicator>> joinTcp(const Job& job, int rank, int) {
  io::raiseDescriptorLimit(static_cast<std::size_t>(job.ranks) *
                               static_cast<std::size_t>(job.local_ranks) +
                           kOtherDescriptors);
  auto made = std::make_unique<TcpRank>(job, rank);
  TRY_OK(made->join(job));
  return made;
}

}  // namespace muster::collective
