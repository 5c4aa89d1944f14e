// Page-locked memory in pieces, over a driver that knows what is registered.
#include "agent/memory/host_store.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "agent/order/captures.h"
#include "agent/order/current_context.h"

namespace memopt::agent {
namespace {

constexpr std::uint64_t kPiece = 64 * 1024;
constexpr std::uint64_t kHuge = std::uint64_t{2} << 20;
const auto kOurs = reinterpret_cast<CUcontext>(0x10);

bool is_mapped(const void* address) {
  unsigned char there = 0;
  const int kept = errno;
  const bool mapped = mincore(const_cast<void*>(address), 4096, &there) == 0;
  errno = kept;
  return mapped;
}

struct FakeHost {
  std::mutex mutex;
  std::map<void*, std::size_t> registered;
  std::vector<std::size_t> asked;      // pieces, of each call
  std::function<bool(int)> refuses;    // the call with this number
  std::function<void()> meanwhile;     // is run once, by a registration
  std::size_t most = ~std::size_t{0};  // bytes that are registered at once
  int at_work = 0;
  int at_work_peak = 0;
  bool elsewhere = false;  // in another context
  bool strictly = false;   // as if no stream were being captured
  int failed_unregistrations = 0;

  std::uint64_t bytes() {
    const std::lock_guard guard(mutex);
    std::uint64_t sum = 0;
    for (const auto& [address, size] : registered) sum += size;
    return sum;
  }
};
FakeHost* g_host = nullptr;
thread_local CUcontext t_context = nullptr;
thread_local CUstreamCaptureMode t_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

CUresult register_memory(void* address, std::size_t bytes, unsigned flags) {
  FakeHost& host = *g_host;
  std::function<void()> meanwhile;
  int number = 0;
  {
    const std::lock_guard guard(host.mutex);
    number = static_cast<int>(host.asked.size());
    host.asked.push_back(bytes / kPiece);
    host.at_work_peak = std::max(host.at_work_peak, ++host.at_work);
    host.elsewhere |= t_context != kOurs;
    host.strictly |= t_mode != CU_STREAM_CAPTURE_MODE_RELAXED;
    meanwhile.swap(host.meanwhile);
  }
  EXPECT_EQ(flags, static_cast<unsigned>(CU_MEMHOSTREGISTER_PORTABLE));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(address) % kHuge, 0u);
  EXPECT_TRUE(is_mapped(address));
  EXPECT_TRUE(is_mapped(static_cast<std::byte*>(address) + bytes - 4096));
  if (meanwhile) meanwhile();
  errno = ENOTTY;
  const std::lock_guard guard(host.mutex);
  --host.at_work;
  if (bytes > host.most || (host.refuses && host.refuses(number))) return CUDA_ERROR_OUT_OF_MEMORY;
  return host.registered.emplace(address, bytes).second ? CUDA_SUCCESS : CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
}

Driver host_functions() {
  Driver driver;
  driver.host_register = register_memory;
  driver.host_unregister = [](void* address) {
    EXPECT_TRUE(is_mapped(address)) << "it goes back after that, not before";
    const std::lock_guard guard(g_host->mutex);
    if (g_host->registered.erase(address) == 1) return CUDA_SUCCESS;
    ++g_host->failed_unregistrations;
    return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
  };
  driver.exchange_capture_mode = [](CUstreamCaptureMode* mode) {
    std::swap(*mode, t_mode);
    return CUDA_SUCCESS;
  };
  driver.current_context = [](CUcontext* context) { return *context = t_context, CUDA_SUCCESS; };
  driver.context_push = [](CUcontext context) { return t_context = context, CUDA_SUCCESS; };
  driver.context_pop = [](CUcontext* context) { return *context = t_context, t_context = nullptr, CUDA_SUCCESS; };
  return driver;
}

class HostStoreTest : public testing::Test {
 protected:
  void SetUp() override {
    g_host = &fake;
    note_own_context_change();  // other tests of the process have another driver
    const auto* const test = testing::UnitTest::GetInstance()->current_test_info();
    root = testing::TempDir() + "host_store." + std::to_string(::getpid()) + "." + test->name();
    available(std::uint64_t{1} << 40);
  }
  void TearDown() override {
    EXPECT_TRUE(fake.registered.empty()) << "all went back";
    EXPECT_EQ(fake.failed_unregistrations, 0);
    EXPECT_FALSE(fake.elsewhere);
    EXPECT_FALSE(fake.strictly);
    EXPECT_EQ(t_context, nullptr);
    EXPECT_EQ(t_mode, CU_STREAM_CAPTURE_MODE_GLOBAL);
    std::filesystem::remove_all(root);
  }

  // What a host has that may be taken.
  void available(std::uint64_t bytes) {
    std::filesystem::create_directories(root + "/proc");
    std::ofstream(root + "/proc/meminfo") << "MemTotal: 0 kB\nMemAvailable: " << (bytes >> 10) << " kB\n";
  }
  std::unique_ptr<HostStore> store(std::uint64_t limit = 0, std::uint64_t most_at_once = std::uint64_t{1} << 30) {
    auto made = std::make_unique<HostStore>(driver, HostStore::Settings{most_at_once, root.c_str()});
    made->start(kPiece, limit, kOurs);
    return made;
  }
  static bool grow(HostStore& store, std::size_t pieces) {
    ArenaLock lock;
    return store.grow(lock, pieces);
  }
  static std::vector<HostPiece*> take_all(HostStore& store) {
    std::vector<HostPiece*> pieces;
    while (HostPiece* const piece = store.take()) pieces.push_back(piece);
    return pieces;
  }

  FakeHost fake;
  const Driver driver = host_functions();
  std::string root;
};

TEST_F(HostStoreTest, NothingIsThereBeforeItIsAskedFor) {
  const auto host = store();
  EXPECT_EQ(host->take(), nullptr);
  EXPECT_EQ(host->held_bytes(), 0u);
  EXPECT_TRUE(grow(*host, 0));
  HostStore not_started(driver);
  EXPECT_FALSE(grow(not_started, 1));
  EXPECT_TRUE(fake.asked.empty());
}

TEST_F(HostStoreTest, PiecesLieSideBySideAndAreZero) {
  const auto host = store();
  ASSERT_TRUE(grow(*host, 5));
  EXPECT_EQ(host->free_pieces(), 5u);
  EXPECT_EQ(host->held_bytes(), 5 * kPiece) << "to the byte";
  EXPECT_EQ(fake.bytes(), 5 * kPiece);
  const auto pieces = take_all(*host);
  ASSERT_EQ(pieces.size(), 5u);
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    EXPECT_EQ(pieces[i]->bytes, pieces[0]->bytes + i * kPiece);
    EXPECT_TRUE(pieces[i]->former.empty());
    EXPECT_TRUE(std::all_of(pieces[i]->bytes, pieces[i]->bytes + kPiece, [](std::byte b) { return b == std::byte{}; }));
  }
}

TEST_F(HostStoreTest, TheOneThatHasBeenFreeForLongestIsTaken) {
  const auto host = store();
  ASSERT_TRUE(grow(*host, 4));
  const auto pieces = take_all(*host);
  Release use;
  use.add(StreamUse{3, 17});
  for (const int i : {2, 0, 3}) host->give_back(pieces[static_cast<std::size_t>(i)], use);
  EXPECT_EQ(host->take(), pieces[2]);
  host->give_back(pieces[1], Release{});
  EXPECT_EQ(host->take(), pieces[0]);
  EXPECT_EQ(pieces[0]->former.count, 1u) << "who takes it sees what it was used for";
  EXPECT_EQ(pieces[0]->former.uses[0].position, 17u);
  EXPECT_EQ(host->take(), pieces[3]);
  EXPECT_EQ(host->take(), pieces[1]);
  EXPECT_TRUE(pieces[1]->former.empty());
  EXPECT_EQ(host->take(), nullptr);
  EXPECT_EQ(host->free_pieces(), 0u);
}

TEST_F(HostStoreTest, OfRunsTheShortestThatIsLongEnoughIsTaken) {
  const auto host = store();
  ASSERT_TRUE(grow(*host, 9));
  const auto pieces = take_all(*host);
  // Runs of four, one, and two.
  for (const std::size_t i : {8, 0, 5, 2, 1, 7, 3}) host->give_back(pieces[i], Release{});
  std::vector<HostPiece*> run(5);
  EXPECT_FALSE(host->take_run(5, run.data()));
  EXPECT_FALSE(host->take_run(0, run.data()));
  ASSERT_TRUE(host->take_run(2, run.data()));
  EXPECT_EQ(run[0], pieces[7]);
  EXPECT_EQ(run[1], pieces[8]);
  ASSERT_TRUE(host->take_run(3, run.data()));
  EXPECT_EQ(run[2], pieces[2]);
  EXPECT_EQ(host->free_pieces(), 2u);
  host->keep_back(2);
  EXPECT_FALSE(host->take_run(1, run.data()));
  host->keep_back(0);
  EXPECT_EQ(host->take(), pieces[5]) << "of the others still the one that has been free for longest";
  EXPECT_EQ(host->take(), pieces[3]);
  EXPECT_EQ(host->take(), nullptr);
}

TEST_F(HostStoreTest, WhatIsKeptBackIsNobodys) {
  const auto host = store();
  ASSERT_TRUE(grow(*host, 6));
  host->keep_back(4);
  EXPECT_EQ(host->free_pieces(), 2u);
  ASSERT_TRUE(grow(*host, 3)) << "others get more";
  EXPECT_EQ(fake.asked, (std::vector<std::size_t>{6, 1}));
  EXPECT_EQ(take_all(*host).size(), 3u);
  EXPECT_EQ(host->take(), nullptr);
  host->keep_back(0);
  EXPECT_EQ(host->free_pieces(), 4u);
  EXPECT_EQ(take_all(*host).size(), 4u);
  // More than there are.
  host->keep_back(9);
  EXPECT_EQ(host->free_pieces(), 0u);
  host->release();
  EXPECT_EQ(host->free_pieces(), 0u);
}

TEST_F(HostStoreTest, GrowsByAnEighthAtLeast) {
  const auto host = store();
  ASSERT_TRUE(grow(*host, 32));
  ASSERT_TRUE(grow(*host, 32)) << "they are there";
  take_all(*host);
  ASSERT_TRUE(grow(*host, 1));
  ASSERT_TRUE(grow(*host, 4)) << "they are there";
  ASSERT_TRUE(grow(*host, 14)) << "four are there";
  EXPECT_EQ(fake.asked, (std::vector<std::size_t>{32, 4, 10}));
  EXPECT_EQ(host->held_bytes(), 46 * kPiece);
}

TEST_F(HostStoreTest, InSteps) {
  const auto host = store(0, 8 * kPiece);
  ASSERT_TRUE(grow(*host, 20));
  EXPECT_EQ(fake.asked, (std::vector<std::size_t>{8, 8, 4}));
  const auto pieces = take_all(*host);
  EXPECT_EQ(std::set<HostPiece*>(pieces.begin(), pieces.end()).size(), 20u);
  // A piece is larger than what is registered at once: one by one.
  const auto large = store(0, kPiece / 2);
  ASSERT_TRUE(grow(*large, 2));
  EXPECT_EQ(fake.asked, (std::vector<std::size_t>{8, 8, 4, 1, 1}));
}

TEST_F(HostStoreTest, TheLimitIsNotPassed) {
  const auto host = store(10 * kPiece + kPiece / 2);
  EXPECT_FALSE(grow(*host, 20));
  EXPECT_EQ(host->held_bytes(), 10 * kPiece);
  EXPECT_NE(host->note().find("MEMOPT_HOST_LIMIT"), std::string::npos) << host->note();
  EXPECT_TRUE(grow(*host, 10));
  EXPECT_FALSE(grow(*host, 11));
  EXPECT_EQ(fake.asked, (std::vector<std::size_t>{10}));
  const auto none = store(kPiece - 1);
  EXPECT_FALSE(grow(*none, 1));
  EXPECT_EQ(fake.asked.size(), 1u);
}

TEST_F(HostStoreTest, TheHostsRoomIsNotPassed) {
  const auto host = store();
  available(6 * kPiece + kPiece / 2);
  fake.meanwhile = [this] { available(kPiece - 1024); };
  EXPECT_FALSE(grow(*host, 20));
  EXPECT_EQ(host->held_bytes(), 6 * kPiece);
  EXPECT_EQ(fake.asked, (std::vector<std::size_t>{6}));
  EXPECT_NE(host->note().find("the host's free memory"), std::string::npos) << host->note();
  available(std::uint64_t{1} << 40);
  EXPECT_TRUE(grow(*host, 20)) << "what was no refusal is asked for again at once";
  EXPECT_EQ(host->note(), "");
}

TEST_F(HostStoreTest, LessWhereTheLargerStepIsNotToBeHad) {
  const auto host = store();
  ASSERT_TRUE(grow(*host, 64));
  take_all(*host);
  fake.asked.clear();
  fake.most = 3 * kPiece;
  ASSERT_TRUE(grow(*host, 3));
  EXPECT_EQ(fake.asked, (std::vector<std::size_t>{8, 3})) << "what would be good, then what is needed";
  fake.asked.clear();
  ASSERT_TRUE(grow(*host, 8));
  EXPECT_EQ(fake.asked, (std::vector<std::size_t>{8, 5, 2, 8, 3}));
  EXPECT_EQ(host->held_bytes(), fake.bytes());
}

TEST_F(HostStoreTest, ARefusalAtEachCall) {
  for (int refused = 0; refused < 12; ++refused) {
    SCOPED_TRACE(refused);
    fake.asked.clear();
    fake.refuses = [refused](int call) { return call == refused; };
    const auto host = store(0, 4 * kPiece);
    for (const std::size_t pieces : {1u, 6u, 9u, 20u}) {
      if (!grow(*host, pieces)) {
        EXPECT_NE(host->note().find("error 2"), std::string::npos) << host->note();
        EXPECT_TRUE(grow(*host, pieces)) << "the next try is at once";
      }
      EXPECT_EQ(host->note(), "");
      EXPECT_GE(host->free_pieces(), pieces);
      EXPECT_EQ(host->held_bytes(), fake.bytes());
    }
    EXPECT_EQ(host->held_bytes(), host->free_pieces() * kPiece);
  }
}

TEST_F(HostStoreTest, WhatIsAlwaysRefusedIsRarelyTried) {
  const auto host = store();
  fake.refuses = [](int) { return true; };
  for (int i = 0; i < 1000; ++i) EXPECT_FALSE(grow(*host, 1));
  EXPECT_GT(fake.asked.size(), 5u);
  EXPECT_LT(fake.asked.size(), 20u);
  EXPECT_NE(host->note(), "") << "also while it is not tried";
  EXPECT_EQ(host->held_bytes(), 0u);
  fake.refuses = nullptr;
  int calls = 1;
  while (!grow(*host, 1)) ++calls;
  EXPECT_LT(calls, 1100);
  take_all(*host);
  EXPECT_TRUE(grow(*host, 1)) << "from then on as before";
  EXPECT_EQ(host->note(), "");
}

TEST_F(HostStoreTest, NotWhileAStreamIsCaptured) {
  const auto host = store();
  ASSERT_TRUE(grow(*host, 1));
  capture_opened();
  EXPECT_TRUE(grow(*host, 1));
  EXPECT_FALSE(grow(*host, 2));
  EXPECT_NE(host->note().find("captured"), std::string::npos) << host->note();
  EXPECT_EQ(fake.asked.size(), 1u);
  capture_closed();
  EXPECT_TRUE(grow(*host, 2));
  EXPECT_EQ(host->note(), "");
}

TEST_F(HostStoreTest, TheLockIsFreeMeanwhile) {
  const auto host = store();
  bool free = false;
  fake.meanwhile = [&free] { free = __atomic_load_n(&arena_lock_word.word, __ATOMIC_RELAXED) == 0; };
  ASSERT_TRUE(grow(*host, 1));
  EXPECT_TRUE(free);
}

TEST_F(HostStoreTest, AllGoesBack) {
  const auto host = store(0, 4 * kPiece);
  ASSERT_TRUE(grow(*host, 10));
  const std::vector<HostPiece*> pieces{host->take(), host->take()};
  const std::byte* const bytes = pieces[0]->bytes;
  host->release();
  EXPECT_FALSE(is_mapped(bytes));
  EXPECT_TRUE(fake.registered.empty());
  EXPECT_EQ(host->held_bytes(), 0u);
  EXPECT_EQ(host->free_pieces(), 0u);
  EXPECT_EQ(host->take(), nullptr);
  ASSERT_TRUE(grow(*host, 2));
  EXPECT_EQ(host->held_bytes(), 2 * kPiece);
}

TEST_F(HostStoreTest, TheContextTookTheRegistrationWithIt) {
  const auto host = store();
  ASSERT_TRUE(grow(*host, 3));
  const HostPiece* const piece = host->take();
  const std::byte* const bytes = piece->bytes;
  fake.registered.clear();
  host->release();
  EXPECT_FALSE(is_mapped(bytes)) << "the memory is ours";
  EXPECT_EQ(fake.failed_unregistrations, 1);
  fake.failed_unregistrations = 0;
}

TEST_F(HostStoreTest, ReleasedWhileItGrows) {
  const auto host = store();
  ASSERT_TRUE(grow(*host, 2));
  fake.meanwhile = [&host] {
    ArenaLock lock;
    host->release();
  };
  EXPECT_FALSE(grow(*host, 5));
  EXPECT_EQ(host->held_bytes(), 0u);
  EXPECT_TRUE(fake.registered.empty());
  EXPECT_TRUE(grow(*host, 1));
}

TEST_F(HostStoreTest, ReplacedWhileItGrows) {
  const auto host = store();
  HostStore* const place = host.get();
  // As the arena does it when its context goes; the next one is not started yet, or grows already.
  for (const bool started : {false, true}) {
    fake.meanwhile = [&] {
      ArenaLock lock;
      std::destroy_at(place);
      std::construct_at(place, driver, HostStore::Settings{std::uint64_t{1} << 30, root.c_str()});
      if (!started) return;
      place->start(kPiece, 0, kOurs);
      ASSERT_TRUE(place->grow(lock, 3));
    };
    EXPECT_FALSE(grow(*place, 5)) << "though as many may be free by now";
    EXPECT_EQ(place->held_bytes(), started ? 3 * kPiece : 0u);
    EXPECT_EQ(fake.bytes(), place->held_bytes());
    place->start(kPiece, 0, kOurs);
  }
}

TEST_F(HostStoreTest, AForkedChildHasNoneOfIt) {
  const auto host = store();
  ASSERT_TRUE(grow(*host, 1));
  std::byte* const bytes = host->take()->bytes;
  bytes[0] = std::byte{0x5a};
  const pid_t child = fork();
  // Something else may have been mapped there since, by a sanitizer.
  if (child == 0) _exit(is_mapped(bytes) && bytes[0] == std::byte{0x5a} ? 1 : 0);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(HostStoreTest, ErrnoIsKept) {
  const auto host = store();
  errno = E2BIG;
  EXPECT_TRUE(grow(*host, 1));
  fake.refuses = [](int) { return true; };
  EXPECT_FALSE(grow(*host, 5));
  host->release();
  EXPECT_EQ(errno, E2BIG);
}

// Anything in any order: pieces are disjoint, and come back in the order in which they were given.
TEST_F(HostStoreTest, LikeAModel) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const auto below = [&random](std::size_t end) { return random() % end; };
    const std::uint64_t limit = below(2) != 0 ? (20 + below(60)) * kPiece : 0;
    const std::uint64_t at_once = (1 + below(16)) * kPiece;
    const auto host = store(limit, at_once);
    fake.refuses = [&](int) { return below(5) == 0; };
    std::deque<HostPiece*> free;  // as far as their order is known
    std::set<HostPiece*> known;
    std::set<const std::byte*> addresses;
    std::vector<HostPiece*> taken;
    for (int i = 0; i < 300; ++i) {
      const std::size_t what = below(10);
      if (what == 0) {
        const std::size_t wanted = host->free_pieces() + below(8);
        if (grow(*host, wanted)) {
          EXPECT_GE(host->free_pieces(), wanted);
        } else {
          EXPECT_LT(host->free_pieces(), wanted);
          EXPECT_NE(host->note(), "");
        }
      } else if (what == 1) {
        std::vector<HostPiece*> run(1 + below(4));
        if (!host->take_run(run.size(), run.data())) continue;
        for (std::size_t k = 0; k < run.size(); ++k) {
          ASSERT_EQ(run[k]->bytes, run[0]->bytes + k * kPiece);
          ASSERT_EQ(std::find(taken.begin(), taken.end(), run[k]), taken.end());
          if (known.insert(run[k]).second) {
            EXPECT_TRUE(addresses.insert(run[k]->bytes).second);
          } else {
            ASSERT_EQ(std::erase(free, run[k]), 1u);
          }
          taken.push_back(run[k]);
        }
      } else if (what < 6) {
        HostPiece* const piece = host->take();
        ASSERT_EQ(piece == nullptr, taken.size() == host->held_bytes() / kPiece);
        if (piece == nullptr) continue;
        if (known.insert(piece).second) {
          EXPECT_TRUE(addresses.insert(piece->bytes).second);
          EXPECT_EQ(reinterpret_cast<std::uintptr_t>(piece->bytes) % 4096, 0u);
        } else {
          ASSERT_FALSE(free.empty());
          EXPECT_EQ(piece, free.front());
          free.pop_front();
        }
        taken.push_back(piece);
      } else if (!taken.empty()) {
        std::swap(taken[below(taken.size())], taken.back());
        host->give_back(taken.back(), Release{});
        free.push_back(taken.back());
        taken.pop_back();
      }
      ASSERT_EQ(host->free_pieces() + taken.size(), host->held_bytes() / kPiece);
      ASSERT_EQ(host->held_bytes(), fake.bytes());
      ASSERT_TRUE(limit == 0 || host->held_bytes() <= limit);
    }
    EXPECT_LE(*std::max_element(fake.asked.begin(), fake.asked.end()) * kPiece, at_once);
    for (const std::byte* const address : addresses) {
      auto step = fake.registered.upper_bound(const_cast<std::byte*>(address));
      ASSERT_NE(step, fake.registered.begin());
      --step;
      ASSERT_LE(address + kPiece, static_cast<const std::byte*>(step->first) + step->second);
    }
    fake.asked.clear();
  }
}

TEST_F(HostStoreTest, ManyThreadsGrowAndUseIt) {
  constexpr int kThreads = 4;
  const auto host = store(48 * kPiece, 4 * kPiece);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&host, thread] {
      std::mt19937 random(static_cast<unsigned>(thread));
      for (int i = 0; i < 60; ++i) {
        // Together never more than the limit: each one gets what it asks for in the end.
        const std::size_t wanted = 1 + random() % (48 / kThreads);
        std::vector<HostPiece*> own;
        while (own.size() < wanted) {
          ArenaLock lock;
          host->grow(lock, wanted - own.size());
          while (own.size() < wanted) {
            HostPiece* const piece = host->take();
            if (piece == nullptr) break;
            own.push_back(piece);
          }
        }
        for (HostPiece* const piece : own) std::fill_n(piece->bytes, kPiece / 16, std::byte(thread + 1));
        for (HostPiece* const piece : own) {
          ASSERT_EQ(piece->bytes[0], std::byte(thread + 1));
          ASSERT_EQ(piece->bytes[kPiece / 16 - 1], std::byte(thread + 1));
        }
        ArenaLock lock;
        for (HostPiece* const piece : own) host->give_back(piece, Release{});
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(host->free_pieces() * kPiece, host->held_bytes());
  EXPECT_EQ(host->held_bytes(), fake.bytes());
  EXPECT_LE(host->held_bytes(), 48 * kPiece);
  EXPECT_EQ(fake.at_work_peak, 1) << "one thread at a time";
}

TEST_F(HostStoreTest, ReleasedAgainAndAgainWhileThreadsGrow) {
  const auto host = store(0, 4 * kPiece);
  int at_work = 3;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 3; ++thread) {
    threads.emplace_back([&host, &at_work] {
      for (int i = 0; i < 100; ++i) {
        ArenaLock lock;
        host->grow(lock, host->free_pieces() + 9);
      }
      __atomic_fetch_sub(&at_work, 1, __ATOMIC_RELAXED);
    });
  }
  while (__atomic_load_n(&at_work, __ATOMIC_RELAXED) != 0) {
    {
      ArenaLock lock;
      host->release();
    }
    sched_yield();
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(host->held_bytes(), fake.bytes());
  host->release();
  EXPECT_EQ(fake.bytes(), 0u);
}

}  // namespace
}  // namespace memopt::agent
