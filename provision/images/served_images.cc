// SPDX-License-Identifier: Apache-2.0
#include "provision/images/served_images.h"

#include <boost/asio/redirect_error.hpp>

namespace muster::provision {

Task<std::optional<PackedImage>> ServedImages::find(std::string digest) {
  if (!known_.contains(digest)) co_await read();
  const auto found = known_.find(digest);
  co_return found == known_.end() ? std::nullopt : std::optional(found->second);
}

Task<void> ServedImages::read() {
  if (const auto reading = reading_) {
    boost::system::error_code done;
    co_await reading->async_wait(asio::redirect_error(asio::use_awaitable, done));
    co_return;
  }
  const auto now = std::chrono::steady_clock::now();
  if (read_at_ != std::chrono::steady_clock::time_point{} && now - read_at_ < kReadInterval)
    co_return;
  reading_ = std::make_shared<asio::steady_timer>(co_await asio::this_coro::executor,
                                                  std::chrono::steady_clock::time_point::max());
  // Whoever is called off while it waits must not leave the others waiting.
  struct End {
    ServedImages& self;
    ~End() { std::exchange(self.reading_, nullptr)->cancel(); }
  };
  const End end{*this};
  auto images = workers_ ? co_await offload<Images>(*workers_, read_all_) : read_all_();
  for (auto& [digest, image] : images) known_.insert_or_assign(digest, std::move(image));
  read_at_ = std::chrono::steady_clock::now();
}

}  // namespace muster::provision
