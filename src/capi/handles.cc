#include "capi/handles.h"

#include <string>

namespace hearth::capi {
namespace {

// Odd numbers are no addresses of objects, so that a pointer to something else
// is no handle by chance.
constexpr std::uintptr_t kFirst = 0x1001;
constexpr std::uintptr_t kStep = 2;

}  // namespace

Handles::Handles() : next_(kFirst) {}

Handles& Handles::All() {
  // Never destroyed: threads may still call when the process ends.
  static auto* handles = new Handles;
  return *handles;
}

std::uintptr_t Handles::AddObject(std::string_view kind,
                                  std::shared_ptr<void> object) {
  const MutexLock lock(mutex_);
  const std::uintptr_t handle = next_;
  entries_.emplace(handle, Entry{kind, std::move(object)});
  next_ += kStep;
  return handle;
}

hearth_code Handles::Check(std::string_view kind, std::uintptr_t handle) {
  const std::string wanted = "the " + std::string(kind);
  if (handle == 0) return Fail(HEARTH_BAD_HANDLE, wanted + " is NULL");
  const auto entry = entries_.find(handle);
  if (entry == entries_.end()) {
    const bool was_one =
        handle >= kFirst && handle < next_ && (handle - kFirst) % kStep == 0;
    return Fail(HEARTH_BAD_HANDLE,
                wanted + (was_one ? " was freed" : " is no handle of hearth"));
  }
  if (entry->second.kind != kind) {
    return Fail(HEARTH_BAD_HANDLE, wanted + " is a handle of another kind: " +
                                       std::string(entry->second.kind));
  }
  return HEARTH_OK;
}

std::shared_ptr<void> Handles::FindObject(std::string_view kind,
                                          std::uintptr_t handle) {
  const MutexLock lock(mutex_);
  if (Check(kind, handle) != HEARTH_OK) return nullptr;
  return entries_.at(handle).object;
}

hearth_code Handles::RemoveObject(std::string_view kind,
                                  std::uintptr_t handle) {
  std::shared_ptr<void> last;  // ends outside the lock: it may take long
  const MutexLock lock(mutex_);
  if (handle == 0) return HEARTH_OK;
  const hearth_code code = Check(kind, handle);
  if (code != HEARTH_OK) return code;
  last = std::move(entries_.at(handle).object);
  entries_.erase(handle);
  return HEARTH_OK;
}

}  // namespace hearth::capi
