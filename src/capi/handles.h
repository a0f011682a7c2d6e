// What a caller holds is a number dressed as a pointer, and stands for an
// object here: so a freed or foreign one is found out instead of followed.
// Numbers are never used again.
//
// Threads  any.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/mutex.h"
#include "capi/failure.h"

namespace hearth::capi {

// T: an object of the interface; T::kKind names it, T::Handle is its C type.
class Handles {
 public:
  static Handles& All();

  template <typename T>
  typename T::Handle* Add(std::shared_ptr<T> object) {
    return reinterpret_cast<typename T::Handle*>(
        AddObject(T::kKind, std::move(object)));
  }
  // The object, kept alive by the caller's copy; null after Fail.
  template <typename T>
  std::shared_ptr<T> Find(const typename T::Handle* handle) {
    return std::static_pointer_cast<T>(
        FindObject(T::kKind, reinterpret_cast<std::uintptr_t>(handle)));
  }
  // NULL is nothing to free, as in C.
  template <typename T>
  hearth_code Remove(const typename T::Handle* handle) {
    return RemoveObject(T::kKind, reinterpret_cast<std::uintptr_t>(handle));
  }

 private:
  struct Entry {
    std::string_view kind;
    std::shared_ptr<void> object;
  };

  std::uintptr_t AddObject(std::string_view kind, std::shared_ptr<void> object);
  std::shared_ptr<void> FindObject(std::string_view kind,
                                   std::uintptr_t handle);
  hearth_code RemoveObject(std::string_view kind, std::uintptr_t handle);
  // Why `handle` is none of `kind`; HEARTH_OK when it is one.
  hearth_code Check(std::string_view kind, std::uintptr_t handle)
      HEARTH_REQUIRES(mutex_);

  Mutex mutex_;
  std::uintptr_t next_ HEARTH_GUARDED_BY(mutex_);
  std::unordered_map<std::uintptr_t, Entry> entries_ HEARTH_GUARDED_BY(mutex_);

  Handles();
};

}  // namespace hearth::capi
