// SPDX-License-Identifier: Apache-2.0
#include "validate/collective/collective.h"

#include "base/io/crypto.h"
#include "base/json_input.h"
#include "base/json_problem.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <set>
#include <thread>
#include <utility>

namespace muster::collective {
namespace {

using nlohmann::json;

constexpr int kMaxRanks = 1 << 16, kMaxLocal = 64, kMaxIterations = 100'000, kLastPort = 65535;
constexpr std::uint64_t kMaxBytes = 64ULL << 30;
constexpr std::array kOperations{Operation::AllReduce,     Operation::AllGather,
                                 Operation::ReduceScatter, Operation::AllToAll,
                                 Operation::SendRecv,      Operation::Pair};
constexpr std::size_t kMaxFindings =
    32;  ///< of one report: a group that did not meet has nothing of anything
constexpr double kBitsOfByte = 8;
constexpr double kPairDigits = 1e4;  ///< rates of pairs are told to a ten-thousandth of a Gb/s

std::vector<std::uint64_t> sizesOf(const Job& job) {
  std::vector<std::uint64_t> sizes;
  for (auto bytes = job.min_bytes; bytes <= job.max_bytes; bytes *= 4) sizes.push_back(bytes);
  if (sizes.empty() || sizes.back() != job.max_bytes) sizes.push_back(job.max_bytes);
  return sizes;
}

/// Exchanges of two ranks have no bus bandwidth that a floor could be of.
bool hasFloor(Operation operation) {
  return operation != Operation::SendRecv && operation != Operation::Pair;
}

Result<void> evaluate(const Job& job) {
  std::vector<std::string> wrong;
  if (job.group.empty()) wrong.emplace_back("no group");
  if (job.meeting.find(':') == std::string::npos) wrong.emplace_back("meeting is no address:port");
  if (job.ranks < 2 || job.ranks > kMaxRanks) wrong.push_back(fmt::format("{} ranks", job.ranks));
  if (job.local_ranks < 1 || job.local_ranks > kMaxLocal || job.first_rank < 0 ||
      job.first_rank + job.local_ranks > job.ranks)
    wrong.push_back(fmt::format("local ranks {} to {} of {}", job.first_rank,
                                job.first_rank + job.local_ranks - 1, job.ranks));
  else if (job.ranks % job.local_ranks || job.first_rank % job.local_ranks)
    wrong.push_back(fmt::format("{} ranks in nodes of {}, the first here {}", job.ranks,
                                job.local_ranks, job.first_rank));
  if (job.operations.empty()) wrong.emplace_back("no operation");
  if (job.min_bytes < 4 || job.min_bytes > job.max_bytes || job.max_bytes > kMaxBytes)
    wrong.push_back(fmt::format("{} to {} bytes", job.min_bytes, job.max_bytes));
  if (job.iterations < 1 || job.iterations > kMaxIterations)
    wrong.push_back(fmt::format("{} iterations", job.iterations));
  if (!(job.min_busbw_gbytes_per_s >= 0)) wrong.emplace_back("a floor that is not a number");
  if (job.min_busbw_gbytes_per_s > 0 && std::ranges::none_of(job.operations, hasFloor))
    wrong.emplace_back(
        "min_busbw_gbytes_per_s is a floor of collectives, and none is among the operations");
  if (job.limit.count() < 1) wrong.emplace_back("no time");
  if (wrong.empty()) return {};
  std::string words;
  for (const auto& each : wrong) words += (words.empty() ? "" : "; ") + each;
  return fail(ErrorCode::InvalidInput, "this job cannot be run: " + words);
}

struct Ranks {
  const Job& job;
  Progress& progress;
};

std::string wordsOf(Operation operation, std::uint64_t bytes, int peer) {
  return fmt::format("{} of {} bytes{}", toString(operation), bytes,
                     peer < 0 ? "" : fmt::format(" with rank {}", peer));
}

Result<void> runStep(Ranks& ranks, Communicator& communicator, int rank, const Step& step,
                     std::uint64_t bytes) {
  const auto& job = ranks.job;
  const auto where = [&] {
    return fmt::format("rank {} {}", rank, wordsOf(step.operation, bytes, step.peer));
  };
  const auto wrong = communicator.check(step, job.seed);
  if (!wrong) return fail(Error(wrong.error()).within(where()));
  const auto seconds = communicator.time(step, job.iterations);
  if (!seconds) return fail(Error(seconds.error()).within(where()));
  Row row{rank,  step.peer, communicator.device(), step.operation,
          bytes, *wrong,    *seconds * 1e6,        static_cast<double>(bytes) * 1e-9 / *seconds,
          0};
  row.busbw_gbytes_per_s = row.algbw_gbytes_per_s * busFactor(step.operation, job.ranks);
  ranks.progress.add(std::move(row));
  return {};
}

Result<void> runRank(Ranks& ranks, const Join& join, int local) {
  const auto& job = ranks.job;
  const int rank = job.first_rank + local;
  auto joined = join(job, rank, local);
  if (!joined)
    return fail(std::move(joined.error())
                    .within(fmt::format("rank {} could not begin {}", rank, job.group)));
  for (const auto operation : job.operations) {
    if (operation == Operation::Pair) {
      for (const int peer : meetings(job.ranks, job.local_ranks, rank))
        if (peer >= 0)
          TRY_OK(runStep(ranks, **joined, rank,
                         {operation, shapeOf(operation, job.max_bytes, job.ranks), peer},
                         job.max_bytes));
      continue;
    }
    for (const auto bytes : sizesOf(job))
      TRY_OK(runStep(ranks, **joined, rank, {operation, shapeOf(operation, bytes, job.ranks), -1},
                     bytes));
  }
  return {};
}

/// What a rank must have done: (operation, bytes, peer).
std::vector<std::tuple<Operation, std::uint64_t, int>> stepsOf(const Job& job, int rank) {
  std::vector<std::tuple<Operation, std::uint64_t, int>> steps;
  for (const auto operation : job.operations) {
    if (operation == Operation::Pair) {
      for (const int peer : meetings(job.ranks, job.local_ranks, rank))
        if (peer >= 0) steps.emplace_back(operation, job.max_bytes, peer);
      continue;
    }
    for (const auto bytes : sizesOf(job)) steps.emplace_back(operation, bytes, -1);
  }
  return steps;
}

/// What is wrong with rows that are said to be those of the job: the same evaluation where they
/// were made and where they are read.
std::vector<std::string> evaluateRows(const Job& job, const std::vector<Row>& rows) {
  std::vector<std::string> wrong;
  std::set<std::tuple<int, Operation, std::uint64_t, int>> seen;
  for (const auto& row : rows) {
    seen.insert({row.rank, row.operation, row.bytes, row.peer});
    const auto where = fmt::format("rank {} ({}) {}", row.rank, row.device,
                                   wordsOf(row.operation, row.bytes, row.peer));
    if (row.wrong) wrong.push_back(fmt::format("{}: {} wrong values", where, row.wrong));
    if (!std::isfinite(row.busbw_gbytes_per_s) || !(row.busbw_gbytes_per_s > 0))
      wrong.push_back(where + ": a bandwidth that is none");
    const bool evaluated = row.bytes == job.max_bytes && hasFloor(row.operation);
    if (evaluated && !(row.busbw_gbytes_per_s >= job.min_busbw_gbytes_per_s))
      wrong.push_back(fmt::format("{}: {:.1f} GB/s of bus bandwidth, expected {:.1f}", where,
                                  row.busbw_gbytes_per_s, job.min_busbw_gbytes_per_s));
  }
  for (int rank = job.first_rank; rank < job.first_rank + job.local_ranks; ++rank)
    for (const auto& [operation, bytes, peer] : stepsOf(job, rank))
      if (!seen.contains({rank, operation, bytes, peer}))
        wrong.push_back(
            fmt::format("rank {} gave no result of {}", rank, wordsOf(operation, bytes, peer)));
  if (wrong.size() > kMaxFindings) {
    const auto more = wrong.size() - kMaxFindings;
    wrong.resize(kMaxFindings);
    wrong.push_back(fmt::format("and {} more", more));
  }
  return wrong;
}

}  // namespace

std::string_view toString(Operation operation) {
  switch (operation) {
    case Operation::AllReduce:
      return "all-reduce";
    case Operation::AllGather:
      return "all-gather";
    case Operation::ReduceScatter:
      return "reduce-scatter";
    case Operation::AllToAll:
      return "all-to-all";
    case Operation::SendRecv:
      return "send-recv";
    case Operation::Pair:
      return "pair";
  }
  return "?";
}

Result<Operation> parseOperation(std::string_view name) {
  for (const auto operation : kOperations)
    if (toString(operation) == name) return operation;
  return fail(ErrorCode::InvalidInput,
              fmt::format("there is no operation '{}'; there are all-reduce, all-gather, "
                          "reduce-scatter, all-to-all, send-recv, pair",
                          name));
}

double busFactor(Operation operation, int ranks) {
  const double n = ranks;
  switch (operation) {
    case Operation::AllReduce:
      return 2 * (n - 1) / n;
    case Operation::AllGather:
    case Operation::ReduceScatter:
    case Operation::AllToAll:
      return (n - 1) / n;
    case Operation::SendRecv:
    case Operation::Pair:
      return 1;
  }
  return 0;
}

/// By the circle method: in step s those meet whose numbers add up to s, modulo one less than the
/// (even) count; the last one meets who is left.
std::vector<int> meetings(int ranks, int ranks_per_node, int rank) {
  const int nodes = ranks / ranks_per_node;
  const int players = nodes > 1 ? nodes : ranks, me = nodes > 1 ? rank / ranks_per_node : rank;
  const int circle = players + players % 2 - 1;  // the last player, or nobody, stands in the middle
  std::vector<int> met;
  for (int step = 0; step < circle; ++step) {
    int other = me == circle ? (step * (circle + 1) / 2) % circle
                             : ((step - me) % circle + circle) % circle;
    if (other == me) other = circle;
    if (other >= players) other = -1;
    met.push_back(other < 0 || nodes <= 1 ? other : other * ranks_per_node + rank % ranks_per_node);
  }
  return met;
}

std::string_view toString(Transport transport) {
  return transport == Transport::Nccl ? "nccl" : "tcp";
}

Result<Transport> parseTransport(std::string_view name) {
  for (const auto transport : {Transport::Nccl, Transport::Tcp})
    if (toString(transport) == name) return transport;
  return fail(ErrorCode::InvalidInput,
              fmt::format("there is no transport '{}'; there are nccl and tcp", name));
}

/// As nccl-tests counts: the size is the larger of what a rank sends and receives in all.
Shape shapeOf(Operation operation, std::uint64_t bytes, int ranks) {
  const auto values = std::max<std::uint64_t>(bytes / sizeof(float), 1),
             n = static_cast<std::uint64_t>(ranks);
  const auto each = std::max<std::uint64_t>(values / n, 1);
  switch (operation) {
    case Operation::AllReduce:
    case Operation::SendRecv:
    case Operation::Pair:
      return {values, values, values};
    case Operation::AllGather:
      return {each, each, each * n};
    case Operation::ReduceScatter:
      return {each, each * n, each};
    case Operation::AllToAll:
      return {each, each * n, each * n};
  }
  return {};
}

json toJson(const Job& job) {
  json operations = json::array();
  for (const auto operation : job.operations) operations.push_back(toString(operation));
  return {{"group", job.group},
          {"meeting", job.meeting},
          {"ranks", job.ranks},
          {"first_rank", job.first_rank},
          {"local_ranks", job.local_ranks},
          {"operations", std::move(operations)},
          {"transport", toString(job.transport)},
          {"min_bytes", job.min_bytes},
          {"max_bytes", job.max_bytes},
          {"iterations", job.iterations},
          {"seed", job.seed},
          {"hcas", job.hcas},
          {"min_busbw_gbytes_per_s", job.min_busbw_gbytes_per_s},
          {"limit_seconds", job.limit.count()}};
}

namespace {

/// Reads a job's fields, and keeps what is wrong with them, by name.
class JobFields {
 public:
  explicit JobFields(const json& from) : from_(from) {}

  void text(const char* name, std::string& into, bool wanted = false) {
    if (const auto* value = find(name, wanted); value && !value->is_string())
      another(name, "text");
    else if (value)
      into = value->get<std::string>();
  }
  /// Whole, and within what `Number` holds: a number that is rounded or cut off is another one.
  template <class Number>
  void whole(const char* name, Number& into, bool wanted = false) {
    const auto* value = find(name, wanted);
    if (!value) return;
    if (value->is_number_unsigned() && std::in_range<Number>(value->get<std::uint64_t>()))
      into = static_cast<Number>(value->get<std::uint64_t>());
    else if (value->is_number_integer() && !value->is_number_unsigned() &&
             std::in_range<Number>(value->get<std::int64_t>()))
      into = static_cast<Number>(value->get<std::int64_t>());
    else
      another(name, "a whole number in range");
  }
  void number(const char* name, double& into) {
    if (const auto* value = find(name, false); value && !value->is_number())
      another(name, "a number");
    else if (value)
      into = value->get<double>();
  }
  std::vector<std::string> texts(const char* name) {
    std::vector<std::string> out;
    const auto* value = find(name, true);
    if (!value) return out;
    if (!value->is_array() ||
        !std::ranges::all_of(*value, [](const auto& each) { return each.is_string(); }))
      another(name, "a list of texts");
    else
      out = value->get<std::vector<std::string>>();
    return out;
  }
  const std::string& wrong() const { return wrong_; }

 private:
  const json* find(const char* name, bool wanted) {
    const auto found = from_.find(name);
    if (found != from_.end()) return &*found;
    if (wanted) add(fmt::format("{} is missing", name));
    return nullptr;
  }
  void another(const char* name, std::string_view kind) {
    add(fmt::format("{} must be {}", name, kind));
  }
  void add(const std::string& text) { wrong_ += (wrong_.empty() ? "" : "; ") + text; }

  const json& from_;
  std::string wrong_;
};

}  // namespace

Result<Job> parseJob(std::string_view text) {
  Job job;
  const auto parsed = parseJson(text, kOrderJson);
  if (!parsed || !parsed->is_object())
    return fail(ErrorCode::InvalidInput, "this is not a job: one JSON object is wanted");
  // A floor whose name is mistyped would be none.
  const auto known = toJson(Job{});
  for (const auto& [key, value] : parsed->items())
    if (!known.contains(key))
      return fail(ErrorCode::InvalidInput, fmt::format("this is not a job: it has no {}", key));
  JobFields fields(*parsed);
  std::string transport(toString(job.transport));
  auto limit_seconds = job.limit.count();
  fields.text("group", job.group, true), fields.text("meeting", job.meeting, true);
  fields.whole("ranks", job.ranks, true), fields.whole("first_rank", job.first_rank, true);
  fields.whole("local_ranks", job.local_ranks, true);
  const auto operations = fields.texts("operations");
  fields.text("transport", transport), fields.text("hcas", job.hcas);
  fields.whole("min_bytes", job.min_bytes), fields.whole("max_bytes", job.max_bytes);
  fields.whole("iterations", job.iterations), fields.whole("seed", job.seed);
  fields.number("min_busbw_gbytes_per_s", job.min_busbw_gbytes_per_s);
  fields.whole("limit_seconds", limit_seconds);
  if (!fields.wrong().empty())
    return fail(ErrorCode::InvalidInput, "this is not a job: " + fields.wrong());
  for (const auto& name : operations) {
    TRY(operation, parseOperation(name));
    job.operations.push_back(operation);
  }
  TRY(chosen, parseTransport(transport));
  job.transport = chosen;
  job.limit = std::chrono::seconds(limit_seconds);
  TRY_OK(evaluate(job));
  return job;
}

Result<std::vector<NodeJob>> placeGroups(const std::vector<Group>& groups, const Job& common,
                                         int first_port) {
  std::vector<NodeJob> jobs;
  std::map<std::string, std::string> placed;
  int port = first_port;
  for (const auto& group : groups) {
    if (port < 1 || port > kLastPort)
      return fail(ErrorCode::InvalidInput, fmt::format("no port is left for group {}", group.name));
    Job job = common;
    job.group = group.name, job.meeting = fmt::format("{}:{}", group.first_address, port++);
    job.local_ranks = group.gpus_per_node,
    job.ranks = group.gpus_per_node * static_cast<int>(group.nodes.size());
    for (std::size_t i = 0; i < group.nodes.size(); ++i) {
      const auto [at, fresh] = placed.emplace(group.nodes[i], group.name);
      if (!fresh)
        return fail(ErrorCode::InvalidInput,
                    fmt::format("{} is in {} and in {}: groups that run at once must share no node",
                                group.nodes[i], at->second, group.name));
      job.first_rank = static_cast<int>(i) * group.gpus_per_node;
      jobs.push_back({group.nodes[i], job});
    }
    TRY_OK(evaluate(job));
  }
  return jobs;
}

/// Pairs are many: of each rank one list of Gb/s by the other's node (or rank, where there is one
/// node), and what was wrong apart.
json toJson(const JobReport& report) {
  json rows = json::array(), pairs = json::array(), wrong = json::array();
  std::uint64_t pair_bytes = 0;
  for (const auto& row : report.rows) {
    if (row.operation != Operation::Pair) {
      rows.push_back({{"rank", row.rank},
                      {"device", row.device},
                      {"operation", toString(row.operation)},
                      {"bytes", row.bytes},
                      {"wrong", row.wrong},
                      {"us", row.microseconds},
                      {"algbw_gbytes_per_s", row.algbw_gbytes_per_s},
                      {"busbw_gbytes_per_s", row.busbw_gbytes_per_s}});
      continue;
    }
    pair_bytes = row.bytes;
    if (pairs.empty() || pairs.back()["rank"] != row.rank)
      pairs.push_back({{"rank", row.rank},
                       {"device", row.device},
                       {"peers", json::array()},
                       {"gbits", json::array()}});
    pairs.back()["peers"].push_back(row.peer);
    pairs.back()["gbits"].push_back(std::round(kBitsOfByte * row.algbw_gbytes_per_s * kPairDigits) /
                                    kPairDigits);
    if (row.wrong) wrong.push_back({row.rank, row.peer, row.wrong});
  }
  json out{{"format", "muster-collective/1"},
           {"group", report.group},
           {"passed", report.passed},
           {"findings", report.findings},
           {"rows", std::move(rows)}};
  if (!pairs.empty())
    out["pairs"] = {{"bytes", pair_bytes}, {"of", std::move(pairs)}, {"wrong", std::move(wrong)}};
  return out;
}

namespace {

std::vector<Row> pairRows(const json& from) {
  std::vector<Row> rows;
  const auto bytes = from.at("bytes").get<std::uint64_t>();
  std::map<std::pair<int, int>, std::uint64_t> wrong;
  for (const auto& each : from.at("wrong"))
    wrong[{each.at(0).get<int>(), each.at(1).get<int>()}] = each.at(2).get<std::uint64_t>();
  for (const auto& list : from.at("of")) {
    const auto &peers = list.at("peers"), &rates = list.at("gbits");
    for (std::size_t i = 0; i < peers.size(); ++i) {
      Row row{list.at("rank").get<int>(),
              peers.at(i).get<int>(),
              list.at("device").get<std::string>(),
              Operation::Pair,
              bytes,
              0,
              0,
              0,
              0};
      row.algbw_gbytes_per_s = row.busbw_gbytes_per_s =
          rates.at(i).is_number() ? rates.at(i).get<double>() / kBitsOfByte : std::nan("");
      row.microseconds = static_cast<double>(bytes) * 1e-3 / row.algbw_gbytes_per_s;
      if (const auto bad = wrong.find({row.rank, row.peer}); bad != wrong.end())
        row.wrong = bad->second;
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

}  // namespace

Result<JobReport> parseReport(std::string_view text, const Job& job) {
  JobReport report;
  try {
    const auto from = jsonOrNone(text, kToolJson);  // none has no members: caught below
    if (from.at("format") != "muster-collective/1" || from.at("group") != job.group)
      return fail(ErrorCode::Corrupt, "this is not a report of the group " + job.group);
    report.group = job.group;
    report.findings = from.at("findings").get<std::vector<std::string>>();
    for (const auto& each : from.at("rows")) {
      TRY(operation, parseOperation(each.at("operation").get<std::string>()));
      const auto rate = [&each](const char* key) {
        return each.at(key).is_number() ? each.at(key).get<double>() : std::nan("");
      };  // JSON has no NaN: it travels as null
      report.rows.push_back({each.at("rank").get<int>(), -1, each.at("device").get<std::string>(),
                             operation, each.at("bytes").get<std::uint64_t>(),
                             each.at("wrong").get<std::uint64_t>(), rate("us"),
                             rate("algbw_gbytes_per_s"), rate("busbw_gbytes_per_s")});
    }
    if (from.contains("pairs"))
      for (auto& row : pairRows(from.at("pairs"))) report.rows.push_back(std::move(row));
    for (const auto& row : report.rows)
      if (row.rank < job.first_rank || row.rank >= job.first_rank + job.local_ranks ||
          (row.operation == Operation::Pair ? row.peer < 0 || row.peer >= job.ranks
                                            : row.peer != -1))
        return fail(ErrorCode::Corrupt,
                    fmt::format("the report contains rank {}, which is not its own", row.rank));
    const bool claims = from.at("passed").get<bool>();
    for (auto& wrong : evaluateRows(job, report.rows))
      if (claims) report.findings.push_back(std::move(wrong));
    if (!claims && report.findings.empty())
      report.findings.emplace_back("it has not passed and gives no reason");
  } catch (const json::exception& error) {
    return fail(ErrorCode::Corrupt,
                fmt::format("the report cannot be read: {}", jsonProblem(error)));
  }
  report.passed = report.findings.empty();
  return report;
}

void Progress::add(Row row) {
  std::lock_guard lock(mutex_);
  report_.rows.push_back(std::move(row));
}

void Progress::fails(std::string why) {
  std::lock_guard lock(mutex_);
  report_.findings.push_back(std::move(why));
}

JobReport Progress::soFar(const std::string& group) const {
  std::lock_guard lock(mutex_);
  auto report = report_;
  report.group = group;
  std::sort(report.rows.begin(), report.rows.end(), [](const Row& a, const Row& b) {
    return std::tie(a.rank, a.operation, a.bytes, a.peer) <
           std::tie(b.rank, b.operation, b.bytes, b.peer);
  });
  return report;
}

JobReport runJob(const Job& job, const Join& join, Progress& progress) {
  if (auto good = evaluate(job); !good) {
    progress.fails(good.error().str());
    return progress.soFar(job.group);
  }
  Ranks ranks{job, progress};
  {
    std::vector<std::jthread> threads;
    for (int local = 0; local < job.local_ranks; ++local)
      threads.emplace_back([&ranks, &join, local] {
        if (auto ran = runRank(ranks, join, local); !ran) ranks.progress.fails(ran.error().str());
      });
  }
  auto report = progress.soFar(job.group);
  if (report.findings.empty()) report.findings = evaluateRows(job, report.rows);
  report.passed = report.findings.empty();
  return report;
}

JobReport runJob(const Job& job, const Join& join) {
  Progress progress;
  return runJob(job, join, progress);
}

std::uint64_t jobNumber(const Job& job) {
  const auto digest = io::sha256Hex(
      fmt::format("{}|{}|{}|{}|{}", job.group, job.meeting, job.ranks, job.seed, job.max_bytes));
  std::uint64_t number = 0;
  std::from_chars(digest.data(), digest.data() + 16, number, 16);
  return number;
}

}  // namespace muster::collective
