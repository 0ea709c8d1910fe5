// SPDX-License-Identifier: Apache-2.0
#include "validate/collective/nccl_meeting.h"

#include "validate/collective/tcp_streams.h"

#include <fmt/format.h>

#include <arpa/inet.h>
#include <ifaddrs.h>

#include <array>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <map>

namespace muster::collective {
namespace {

constexpr std::uint64_t kMagic = 0x64692d6c63636e6d;  ///< "mnccl-id"
constexpr std::size_t kMostIdBytes = 4096;
constexpr std::chrono::seconds kUnknownPeerTimeout{
    5};  ///< whoever connects and says nothing is none of ours

/// What a process says when it comes, and the head of the answer.
struct Hello {
  std::uint64_t magic = kMagic, job = 0;
  std::int32_t first_rank = 0, ranks = 0;
};
struct Answer {
  std::uint64_t magic = kMagic, bytes = 0;
};

struct Place {
  std::string host;
  int port = 0;
};
Place placeOf(const Job& job) {
  const auto colon = job.meeting.rfind(':');
  Place place{job.meeting.substr(0, colon), 0};
  if (colon != std::string::npos)
    std::from_chars(job.meeting.data() + colon + 1, job.meeting.data() + job.meeting.size(),
                    place.port);
  return place;
}

using End = StreamClock::time_point;
using OnMeetingAddress = std::function<void(const std::string&)>;

/// All other processes, by their first rank.
Result<std::map<int, Socket>> everybody(const Job& job, const OnMeetingAddress& reached_by,
                                        End end) {
  TRY(listener, listenAt(placeOf(job).port));
  std::map<int, Socket> came;
  for (int left = job.ranks - job.local_ranks; left > 0;) {
    auto next = acceptOne(listener.get(), end);
    if (!next)
      return fail(std::move(next.error())
                      .within(fmt::format("{} of {} ranks on other nodes did not come to {}", left,
                                          job.ranks - job.local_ranks, job.meeting)));
    Hello hello;
    if (!receiveAll(next->get(), &hello, sizeof hello,
                    std::min(end, StreamClock::now() + kUnknownPeerTimeout)) ||
        hello.magic != kMagic || hello.job != jobNumber(job))
      continue;
    const bool fits = hello.ranks > 0 && hello.ranks <= left &&
                      hello.first_rank >= job.local_ranks &&
                      hello.first_rank + hello.ranks <= job.ranks;
    if (!fits || came.contains(hello.first_rank))
      return fail(ErrorCode::Conflict,
                  fmt::format("ranks from {} on connected twice, or are not among {}",
                              hello.first_rank, job.ranks));
    if (came.empty()) {
      TRY(own, ownAddress(next->get()));
      reached_by(own);
    }
    left -= hello.ranks;
    came.emplace(hello.first_rank, std::move(*next));
  }
  return came;
}

Result<std::string> handOut(const Job& job, const OnMeetingAddress& reached_by,
                            const std::function<Result<std::string>()>& make, End end) {
  TRY(others, everybody(job, reached_by, end));
  TRY(id, make());
  const Answer head{kMagic, id.size()};
  for (const auto& [first_rank, stream] : others) {
    TRY_OK(sendAll(stream.get(), &head, sizeof head, end));
    TRY_OK(sendAll(stream.get(), id.data(), id.size(), end));
  }
  return id;
}

Result<std::string> askFor(const Job& job, const OnMeetingAddress& reached_by, End end) {
  const auto place = placeOf(job);
  TRY(stream, connectTo(place.host, place.port, end));
  TRY(own, ownAddress(stream.get()));
  reached_by(own);
  const Hello hello{kMagic, jobNumber(job), job.first_rank, job.local_ranks};
  TRY_OK(sendAll(stream.get(), &hello, sizeof hello, end));
  Answer head;
  if (auto got = receiveAll(stream.get(), &head, sizeof head, end); !got)
    return fail(std::move(got.error()).within(fmt::format("no NCCL id from {}", job.meeting)));
  if (head.magic != kMagic || head.bytes > kMostIdBytes)
    return fail(
        ErrorCode::Conflict,
        fmt::format("who listens at {} is no muster-collective of this version", job.meeting));
  std::string id(head.bytes, '\0');
  TRY_OK(receiveAll(stream.get(), id.data(), id.size(), end));
  return id;
}

}  // namespace

Result<std::string> meetForId(const Job& job, const OnMeetingAddress& reached_by,
                              const std::function<Result<std::string>()>& make) {
  if (job.local_ranks == job.ranks) return make();
  const auto end = StreamClock::now() + job.limit;
  return job.first_rank == 0 ? handOut(job, reached_by, make, end) : askFor(job, reached_by, end);
}

void useInterfaceOf(const std::string& address) {
  ifaddrs* interfaces = nullptr;
  if (::getifaddrs(&interfaces) != 0) return;
  for (const ifaddrs* one = interfaces; one; one = one->ifa_next) {
    if (!one->ifa_addr || one->ifa_addr->sa_family != AF_INET) continue;
    std::array<char, INET_ADDRSTRLEN> text{};
    ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr,
                text.data(), text.size());
    if (address != text.data()) continue;
    ::setenv("NCCL_SOCKET_IFNAME", fmt::format("={}", one->ifa_name).c_str(), 0);
    break;
  }
  ::freeifaddrs(interfaces);
}

}  // namespace muster::collective
