#include "cuda/driver_device.h"

#include <array>
#include <atomic>
#include <cstring>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "cuda/driver.h"
#include "cuda/kernel_image.h"
#include "cuda/kernel_table.h"
#include "cuda/launch_queue.h"

namespace hearth::gpu {
namespace {

// Numbers of the driver's interface.
constexpr int kProcessors = 16;  // attributes of a device
constexpr int kMajor = 75, kMinor = 76;
constexpr int kSharedBytesMax = 8;    // attribute of a function
constexpr unsigned kNonBlocking = 1;  // a stream's flag
constexpr CuStatus kOutOfMemory = 2;
constexpr int kOldestMajor = 8;
constexpr int kOverlapsMajor = 9;  // launches may begin before others end

// Of the host's memory that the card reaches by itself, for what comes down.
constexpr std::size_t kStagingBytes = std::size_t{4} << 20;

class Card final : public Device {
 public:
  static Result<std::shared_ptr<Device>> Open() {
    HEARTH_ASSIGN(const Driver* driver, OpenDriver());
    auto card = std::shared_ptr<Card>(new Card(*driver));
    HEARTH_TRY(card->Start());
    return std::shared_ptr<Device>(std::move(card));
  }
  ~Card() override {
    if (context_ == nullptr) return;
    driver_.cuCtxSetCurrent(context_);
    {
      const MutexLock lock(launches_mutex_);
      launches_.Close();
    }
    if (staging_ != nullptr) driver_.cuMemFreeHost(staging_);
    if (scratch_ != nullptr) driver_.cuStreamDestroy_v2(scratch_);
    if (queue_ != nullptr) driver_.cuStreamDestroy_v2(queue_);
    if (module_ != nullptr) driver_.cuModuleUnload(module_);
    driver_.cuDevicePrimaryCtxRelease_v2(device_);
  }

  std::string_view name() const override { return name_; }
  int n_processors() const override { return n_processors_; }
  std::uint64_t total_bytes() const override { return Memory().total; }
  std::uint64_t free_bytes() const override { return Memory().free; }

  Result<Address> Allocate(std::uint64_t bytes) override {
    CuAddress at = 0;
    const CuStatus status = Enter([&] {
      return driver_.cuMemAlloc_v2(&at, static_cast<std::size_t>(bytes));
    });
    if (status == 0) return Address{at};
    const std::string wanted = std::to_string((bytes >> 20) + 1);
    return {status == kOutOfMemory ? Code::kResourceFull : Code::kIo,
            name_ + " gives no memory of " + wanted + " MiB (" +
                std::to_string(free_bytes() >> 20) +
                " MiB are free): " + driver_.Words(status) +
                "; use a shorter context or a smaller model, or end other "
                "programs on the card"};
  }
  void Free(Address at) override {
    Note("frees", Enter([&] { return driver_.cuMemFree_v2(at); }));
  }

  void Upload(Address to, ByteSpan from) override {
    if (from.empty() || !Flush()) return;
    // From pageable memory: the driver has read it when the call returns.
    Note("takes bytes", Enter([&] {
           return driver_.cuMemcpyHtoDAsync_v2(to, from.data(), from.size(),
                                               queue_);
         }));
  }
  void Clear(Address at, std::uint64_t bytes) override {
    if (!Flush()) return;
    Note("clears", Enter([&] {
           return driver_.cuMemsetD8Async(
               at, 0, static_cast<std::size_t>(bytes), queue_);
         }));
  }
  using Device::Download;
  void Download(std::span<const DownloadPart> parts) override {
    if (!Flush()) return;
    std::size_t bytes = 0;
    for (const DownloadPart& part : parts) bytes += Padded(part.to.size());
    const bool staged = bytes <= kStagingBytes;
    const MutexLock lock(staging_mutex_);
    Note("gives bytes", Enter([&] { return Enqueue(parts, staged); }));
    if (!staged || failed_.load()) return;
    std::size_t at = 0;
    for (const DownloadPart& part : parts) {
      std::memcpy(part.to.data(), staging_ + at, part.to.size());
      at += Padded(part.to.size());
    }
  }
  void Run(const Launch& launch) override {
    if (failed_.load()) return;
    const MutexLock lock(launches_mutex_);
    launches_.Add(launch);
  }
  Result<void> Wait() override {
    if (Flush()) {
      Note("computes",
           Enter([&] { return driver_.cuStreamSynchronize(queue_); }));
    }
    if (!failed_.load()) return {};
    const MutexLock lock(mutex_);
    return {Code::kIo, failure_};
  }

 private:
  explicit Card(const Driver& driver) : driver_(driver) {}

  static std::size_t Padded(std::size_t bytes) {
    return (bytes + 63) / 64 * 64;
  }
  // Whether the card still works.
  bool Flush() {
    if (failed_.load()) return false;
    LaunchQueue::Failure failure;
    {
      const MutexLock lock(launches_mutex_);
      const CuStatus entered = driver_.cuCtxSetCurrent(context_);
      if (entered == 0) failure = launches_.Flush();
      if (entered != 0) failure.status = entered;
    }
    Note(KernelNames()[static_cast<std::size_t>(failure.kernel)],
         failure.status);
    return !failed_.load();
  }
  // Under staging_mutex_.
  CuStatus Enqueue(std::span<const DownloadPart> parts, bool staged) {
    std::size_t at = 0;
    for (const DownloadPart& part : parts) {
      if (part.to.empty()) continue;
      void* to = staged ? staging_ + at : part.to.data();
      const CuStatus s =
          driver_.cuMemcpyDtoHAsync_v2(to, part.from, part.to.size(), queue_);
      if (s != 0) return s;
      at += Padded(part.to.size());
    }
    return driver_.cuStreamSynchronize(queue_);
  }

  struct Bytes {
    std::size_t free = 0, total = 0;
  };
  Bytes Memory() const {
    Bytes bytes;
    (void)Enter(
        [&] { return driver_.cuMemGetInfo_v2(&bytes.free, &bytes.total); });
    return bytes;
  }

  // Calls of the driver are about the calling thread's context.
  template <class Call>
  CuStatus Enter(const Call& call) const {
    const CuStatus status = driver_.cuCtxSetCurrent(context_);
    return status != 0 ? status : call();
  }
  void Note(std::string_view what, CuStatus status) {
    if (status == 0) return;
    const MutexLock lock(mutex_);
    if (failed_.load()) return;
    failure_ = name_ + " failed (" + std::string(what) +
               "): " + driver_.Words(status) + "; start again, or use the CPU";
    failed_.store(true);
  }

  Result<void> Start() {
    const auto check = [&](const char* what, CuStatus s) -> Result<void> {
      if (s == 0) return {};
      return {Code::kIo, "the NVIDIA card cannot be used (" +
                             std::string(what) + "): " + driver_.Words(s) +
                             "; use the CPU"};
    };
    HEARTH_TRY(check("device", driver_.cuDeviceGet(&device_, 0)));
    std::array<char, 256> name = {};
    HEARTH_TRY(check(
        "name", driver_.cuDeviceGetName(
                    name.data(), static_cast<int>(name.size()) - 1, device_)));
    name_ = name.data();
    int major = 0, minor = 0;
    const auto ask = [&](int attribute, int& value) {
      return check("attribute",
                   driver_.cuDeviceGetAttribute(&value, attribute, device_));
    };
    HEARTH_TRY(ask(kMajor, major));
    HEARTH_TRY(ask(kMinor, minor));
    HEARTH_TRY(ask(kProcessors, n_processors_));
    if (major < kOldestMajor) {
      return {Code::kUnsupported, name_ + " has compute capability " +
                                      std::to_string(major) + "." +
                                      std::to_string(minor) +
                                      " and the kernels need 8.0; use the CPU"};
    }
    HEARTH_TRY(
        check("context", driver_.cuDevicePrimaryCtxRetain(&context_, device_)));
    HEARTH_TRY(check("context", driver_.cuCtxSetCurrent(context_)));
    HEARTH_TRY(check("queue", driver_.cuStreamCreate(&queue_, kNonBlocking)));
    HEARTH_TRY(check("queue", driver_.cuStreamCreate(&scratch_, kNonBlocking)));
    void* staging = nullptr;
    HEARTH_TRY(check("memory of the host",
                     driver_.cuMemHostAlloc(&staging, kStagingBytes, 0)));
    const MutexLock staging_lock(staging_mutex_);
    staging_ = static_cast<std::byte*>(staging);
    HEARTH_TRY(check("kernels",
                     driver_.cuModuleLoadData(&module_, KernelImage().data())));
    HEARTH_ASSIGN(std::vector<CuFunction> functions, FindKernels());
    const MutexLock lock(launches_mutex_);
    launches_.Open(driver_, std::move(functions), queue_, scratch_,
                   major >= kOverlapsMajor);
    return {};
  }

  Result<std::vector<CuFunction>> FindKernels() {
    std::vector<CuFunction> functions(KernelNames().size());
    for (std::size_t i = 0; i < functions.size(); ++i) {
      const std::string name = "hearth_" + std::string(KernelNames()[i]);
      CuStatus s =
          driver_.cuModuleGetFunction(&functions[i], module_, name.c_str());
      if (s == 0) {
        s = driver_.cuFuncSetAttribute(functions[i], kSharedBytesMax,
                                       kSharedBytesPerBlock);
      }
      if (s != 0) {
        return {Code::kIo, "the NVIDIA card cannot be used (" + name +
                               "): " + driver_.Words(s) + "; use the CPU"};
      }
    }
    return functions;
  }

  const Driver& driver_;
  CuDevice device_ = 0;
  CuContext context_ = nullptr;
  CuStream queue_ = nullptr, scratch_ = nullptr;
  CuModule module_ = nullptr;
  std::string name_;
  int n_processors_ = 0;

  Mutex launches_mutex_;
  LaunchQueue launches_ HEARTH_GUARDED_BY(launches_mutex_);
  Mutex staging_mutex_;
  std::byte* staging_ = nullptr;  // one download at a time

  std::atomic<bool> failed_ = false;
  Mutex mutex_;
  std::string failure_ HEARTH_GUARDED_BY(mutex_);
};

}  // namespace

bool HasKernels() { return !KernelImage().empty(); }

Result<std::shared_ptr<Device>> OpenCard() {
  if (!HasKernels()) {
    return {Code::kUnsupported,
            "this program was built without kernels for NVIDIA cards, since "
            "its build found no nvcc; use the CPU, or build hearth where "
            "NVIDIA's CUDA toolkit is installed"};
  }
  return Card::Open();
}

}  // namespace hearth::gpu
