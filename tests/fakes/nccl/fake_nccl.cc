// SPDX-License-Identifier: Apache-2.0
// The names that NCCL and RCCL export, with numbers and types of nccl.h written down here once
// more: so that neither library's header is needed, and what the product believes is not used.
#include "tests/fakes/nccl/fake_nccl.h"

#include <algorithm>
#include <barrier>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace {

using muster::test::fakeNccl;
struct Comm;
using ncclComm_t = Comm*;
struct ncclUniqueId {
  char internal[128];
};
enum {
  ncclSuccess = 0,
  ncclSystemError = 2,
  ncclInvalidArgument = 4,
  ncclRemoteError = 6,
  kFloat32 = 7
};
using ncclResult_t = int;
using Floats = std::vector<float>;

/// All ranks that came with one id.
struct World {
  explicit World(int ranks) : together(ranks), inputs(static_cast<std::size_t>(ranks)) {}
  std::barrier<> together;
  std::vector<Floats> inputs;
  std::mutex mutex;
  std::condition_variable arrived;
  std::map<std::pair<int, int>, std::deque<Floats>> boxes;  ///< (from, to)
};

struct Receive {
  ncclComm_t communicator;
  float* to;
  std::size_t count;
  int from;
};
thread_local int t_groups = 0;
thread_local std::vector<Receive> t_receives;

std::shared_ptr<World> worldOf(const ncclUniqueId& id, int ranks) {
  static std::mutex mutex;
  static std::map<std::string, std::weak_ptr<World>> worlds;
  const std::scoped_lock lock(mutex);
  auto& known = worlds[std::string(id.internal, sizeof id.internal)];
  auto world = known.lock();
  if (!world) known = world = std::make_shared<World>(ranks);
  return world;
}

struct Comm {
  std::shared_ptr<World> world;
  int rank;
};

Floats given(const void* from, std::size_t count, ncclComm_t communicator) {
  const auto* values = static_cast<const float*>(from);
  Floats out(values, values + count);
  if (communicator->rank == fakeNccl().corrupt) out[count / 2] += 1;
  return out;
}

void put(void* to, const Floats& from, std::size_t at, std::size_t count) {
  if (!fakeNccl().silent) std::memcpy(to, from.data() + at, count * sizeof(float));
}

/// Everybody shows its input, then each takes what is its own.
template <class Take>
ncclResult_t together(const char* call, const void* input, std::size_t count,
                      ncclComm_t communicator, Take take) {
  if (fakeNccl().failing == call) return ncclSystemError;
  auto& world = *communicator->world;
  world.inputs[static_cast<std::size_t>(communicator->rank)] = given(input, count, communicator);
  world.together.arrive_and_wait();
  take(world);
  world.together.arrive_and_wait();
  return ncclSuccess;
}

Floats sumOf(const World& world) {
  Floats sum(world.inputs.front().size());
  for (const auto& input : world.inputs)
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += input[i];
  return sum;
}

void receive(const Receive& asked) {
  auto& world = *asked.communicator->world;
  std::unique_lock lock(world.mutex);
  auto& box = world.boxes[{asked.from, asked.communicator->rank}];
  world.arrived.wait(lock, [&box] { return !box.empty(); });
  const auto message = std::move(box.front());
  box.pop_front();
  put(asked.to, message, 0, std::min(asked.count, message.size()));
}

}  // namespace

namespace muster::test {
FakeNccl& fakeNccl() {
  static FakeNccl fake;
  return fake;
}
}  // namespace muster::test

extern "C" {

ncclResult_t ncclGroupEnd();

const char* ncclGetErrorString(ncclResult_t) { return "unhandled system error"; }
const char* ncclGetLastError(ncclComm_t) { return "fake: the cable was pulled"; }
ncclResult_t ncclGetVersion(int* version) { return *version = 22803, ncclSuccess; }
/// Another one each time, as NCCL does it without NCCL_COMM_ID.
ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  if (fakeNccl().failing == "ncclGetUniqueId") return ncclSystemError;
  *id = {};
  const auto number = std::to_string(++fakeNccl().ids);
  std::memcpy(id->internal, number.data(), number.size());
  return ncclSuccess;
}
ncclResult_t ncclCommInitRank(ncclComm_t* communicator, int ranks, ncclUniqueId id, int rank) {
  if (fakeNccl().failing == "ncclCommInitRank") return ncclSystemError;
  *communicator = new Comm{worldOf(id, ranks), rank};
  ++fakeNccl().communicators;
  (*communicator)->world->together.arrive_and_wait();
  return ncclSuccess;
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t, ncclResult_t* behind) {
  return *behind = fakeNccl().remote_error ? ncclRemoteError : ncclSuccess, ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t communicator) {
  --fakeNccl().communicators, ++fakeNccl().aborted;
  delete communicator;
  return ncclSuccess;
}
ncclResult_t ncclCommDestroy(ncclComm_t communicator) {
  --fakeNccl().communicators, ++fakeNccl().destroyed;
  delete communicator;
  return ncclSuccess;
}

ncclResult_t ncclAllReduce(const void* in, void* out, std::size_t count, int type, int,
                           ncclComm_t communicator, void*) {
  if (type != kFloat32) return ncclInvalidArgument;
  return together("ncclAllReduce", in, count, communicator,
                  [&](World& world) { put(out, sumOf(world), 0, count); });
}
ncclResult_t ncclReduceScatter(const void* in, void* out, std::size_t count, int type, int,
                               ncclComm_t communicator, void*) {
  if (type != kFloat32) return ncclInvalidArgument;
  const auto ranks = communicator->world->inputs.size();
  return together("ncclReduceScatter", in, count * ranks, communicator, [&](World& world) {
    put(out, sumOf(world), static_cast<std::size_t>(communicator->rank) * count, count);
  });
}
ncclResult_t ncclAllGather(const void* in, void* out, std::size_t count, int type,
                           ncclComm_t communicator, void*) {
  if (type != kFloat32) return ncclInvalidArgument;
  return together("ncclAllGather", in, count, communicator, [&](World& world) {
    for (std::size_t rank = 0; rank < world.inputs.size(); ++rank)
      put(static_cast<float*>(out) + rank * count, world.inputs[rank], 0, count);
  });
}

ncclResult_t ncclGroupStart() { return ++t_groups, ncclSuccess; }
ncclResult_t ncclSend(const void* from, std::size_t count, int type, int peer,
                      ncclComm_t communicator, void*) {
  if (type != kFloat32) return ncclInvalidArgument;
  if (fakeNccl().failing == "ncclSend") return ncclSystemError;
  auto& world = *communicator->world;
  const std::scoped_lock lock(world.mutex);
  world.boxes[{communicator->rank, peer}].push_back(given(from, count, communicator));
  world.arrived.notify_all();
  return ncclSuccess;
}
ncclResult_t ncclRecv(void* to, std::size_t count, int type, int peer, ncclComm_t communicator,
                      void*) {
  if (type != kFloat32) return ncclInvalidArgument;
  t_receives.push_back({communicator, static_cast<float*>(to), count, peer});
  return t_groups ? ncclSuccess : (++t_groups, ncclGroupEnd());
}
ncclResult_t ncclGroupEnd() {
  if (--t_groups) return ncclSuccess;
  for (const auto& asked : std::exchange(t_receives, {})) receive(asked);
  return ncclSuccess;
}

}  // extern "C"
