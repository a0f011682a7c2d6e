// A mutex that clang checks the use of: -Wthread-safety, in the clang preset,
// refuses code that touches a HEARTH_GUARDED_BY member without its mutex.
// With other compilers the annotations are nothing.
#pragma once

#include <mutex>

#if defined(__clang__)
#define HEARTH_THREAD_ANNOTATION(x) __attribute__((x))
#else
#define HEARTH_THREAD_ANNOTATION(x)
#endif
#define HEARTH_CAPABILITY(name) HEARTH_THREAD_ANNOTATION(capability(name))
#define HEARTH_SCOPED_CAPABILITY HEARTH_THREAD_ANNOTATION(scoped_lockable)
#define HEARTH_GUARDED_BY(x) HEARTH_THREAD_ANNOTATION(guarded_by(x))
#define HEARTH_REQUIRES(...) \
  HEARTH_THREAD_ANNOTATION(requires_capability(__VA_ARGS__))
#define HEARTH_EXCLUDES(...) \
  HEARTH_THREAD_ANNOTATION(locks_excluded(__VA_ARGS__))
#define HEARTH_ACQUIRE(...) \
  HEARTH_THREAD_ANNOTATION(acquire_capability(__VA_ARGS__))
#define HEARTH_RELEASE(...) \
  HEARTH_THREAD_ANNOTATION(release_capability(__VA_ARGS__))

namespace hearth {

class HEARTH_CAPABILITY("mutex") Mutex {
 public:
  void lock() HEARTH_ACQUIRE() { mutex_.lock(); }
  void unlock() HEARTH_RELEASE() { mutex_.unlock(); }

 private:
  std::mutex mutex_;
};

class HEARTH_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) HEARTH_ACQUIRE(mutex) : mutex_(mutex) {
    mutex_.lock();
  }
  ~MutexLock() HEARTH_RELEASE() { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

}  // namespace hearth
