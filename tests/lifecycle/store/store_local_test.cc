// SPDX-License-Identifier: Apache-2.0
// The contract of Store against what needs no server: memory and SQLite.
#include "tests/fakes/memory_store.h"
#include "tests/lifecycle/store_contract.h"

namespace muster::lifecycle {
namespace {

class InMemory final : public StoreMaker {
 public:
  std::unique_ptr<Store> open() override { return std::make_unique<test::MemoryStore>(data_); }

 private:
  std::shared_ptr<test::MemoryStore::Data> data_ = std::make_shared<test::MemoryStore::Data>();
};

class InSqlite final : public StoreMaker {
 public:
  std::unique_ptr<Store> open() override {
    auto opened = openStore(url());
    if (!opened) ADD_FAILURE() << opened.error().str();
    return opened ? std::move(*opened) : nullptr;
  }
  std::string url() const override {
    return "sqlite:" + (folder_.path() / "with 'quotes' and spaces.db").string();
  }

 private:
  test::TempFolder folder_;
};

INSTANTIATE_TEST_SUITE_P(
    Stores, StoreContract,
    testing::Values(StoreKind{"memory", [] { return std::make_unique<InMemory>(); }, ""},
                    StoreKind{"sqlite", [] { return std::make_unique<InSqlite>(); }, ""}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace muster::lifecycle
