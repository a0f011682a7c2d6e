#include "serve/access/keys.h"

#include <openssl/crypto.h>
#include <sys/stat.h>

#include <sstream>
#include <vector>

#include "base/file.h"
#include "base/hash.h"
#include "base/mutex.h"
#include "base/stopwatch.h"

namespace hearth::serve {
namespace {

constexpr std::size_t kFileMax = std::size_t{1} << 20;
constexpr double kLookMs = 1000;  // between two looks at the file
constexpr std::size_t kSecretMin = 8;

struct Key {
  std::string name;
  Digest digest;  // of equal length, so that comparing takes equal time
};
using Keys = std::vector<Key>;

Digest DigestOf(std::string_view secret) {
  return Sha256().Field("hearth api key").Field(secret).Finish();
}

Result<void> AddKey(Keys& keys, const std::string& name,
                    const std::string& secret, const std::string& where) {
  if (secret.size() < kSecretMin) {
    return {Code::kInvalidArgument, where + ": a key has at least " +
                                        std::to_string(kSecretMin) +
                                        " characters"};
  }
  for (const Key& key : keys) {
    if (key.name == name) {
      return {Code::kInvalidArgument,
              where + ": the name " + name + " is there twice"};
    }
  }
  keys.push_back({name, DigestOf(secret)});
  return {};
}

Result<void> ReadKeys(const std::string& path, Keys& keys) {
  struct stat status = {};
  if (::stat(path.c_str(), &status) == 0 &&
      (status.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return {Code::kInvalidArgument,
            path + ": others may read these keys; chmod 600 " + path};
  }
  HEARTH_ASSIGN(const std::string text, ReadTextFile(path, kFileMax));
  std::istringstream lines(text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    const std::string where = path + ", line " + std::to_string(number);
    std::istringstream words(line);
    std::string name, secret, more;
    if (!(words >> name) || name.front() == '#') continue;
    if (!(words >> secret) || words >> more) {
      return {Code::kInvalidArgument, where + " is no \"name key\""};
    }
    HEARTH_TRY(AddKey(keys, name, secret, where));
  }
  if (keys.empty()) {
    return {Code::kInvalidArgument, path + ": no key is in it"};
  }
  return {};
}

class FileKeyRing final : public KeyRing {
 public:
  FileKeyRing(std::string path, std::string single,
              std::function<void(const std::string&)> note)
      : path_(std::move(path)),
        single_(std::move(single)),
        note_(std::move(note)) {}

  Result<void> Read() {
    Keys keys;
    FileStamp stamp;
    if (!path_.empty()) {
      if (const auto now = StatFile(path_); now.ok()) stamp = *now;
      HEARTH_TRY(ReadKeys(path_, keys));
    }
    if (!single_.empty()) {
      HEARTH_TRY(AddKey(keys, "key", single_, "HEARTH_API_KEY"));
    }
    const MutexLock lock(mutex_);
    keys_ = std::move(keys);
    stamp_ = stamp;
    return {};
  }

  int n_keys() const override {
    const MutexLock lock(mutex_);
    return static_cast<int>(keys_.size());
  }

  std::optional<std::string> NameOf(std::string_view secret) override {
    LookAgain();
    const Digest digest = DigestOf(secret);
    const MutexLock lock(mutex_);
    std::optional<std::string> name;
    for (const Key& key : keys_) {
      if (CRYPTO_memcmp(key.digest.bytes.data(), digest.bytes.data(),
                        digest.bytes.size()) == 0) {
        name = key.name;
      }
    }
    return name;
  }

  void Reload() override {
    if (path_.empty()) return;
    const auto read = Read();
    if (read.ok()) return;
    note_(read.error().message + "; the keys before stay in use");
    // One word a change, not one a request.
    const auto now = StatFile(path_);
    const MutexLock lock(mutex_);
    stamp_ = now.ok() ? *now : FileStamp{};
  }

 private:
  void LookAgain() {
    if (path_.empty()) return;
    {
      const MutexLock lock(mutex_);
      if (since_look_.ms() < kLookMs) return;
      since_look_ = Stopwatch();
    }
    const auto now = StatFile(path_);
    {
      const MutexLock lock(mutex_);
      if ((now.ok() ? *now : FileStamp{}) == stamp_) return;
    }
    Reload();
  }

  const std::string path_, single_;
  const std::function<void(const std::string&)> note_;
  mutable Mutex mutex_;
  Keys keys_ HEARTH_GUARDED_BY(mutex_);
  FileStamp stamp_ HEARTH_GUARDED_BY(mutex_);
  Stopwatch since_look_ HEARTH_GUARDED_BY(mutex_);
};

}  // namespace

Result<std::unique_ptr<KeyRing>> KeyRing::Open(
    const std::string& path, const std::string& single,
    std::function<void(const std::string&)> note) {
  auto ring = std::make_unique<FileKeyRing>(path, single, std::move(note));
  HEARTH_TRY(ring->Read());
  return std::unique_ptr<KeyRing>(std::move(ring));
}

}  // namespace hearth::serve
