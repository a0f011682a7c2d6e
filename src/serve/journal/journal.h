// Which ids an answer was sampled with. The same text often has other ids when
// a client sends it back, and then nothing behind it could be reused: the
// journal gives the ids back. It decides ids and never KV.
//
// A file beside the store (docs/formats/journal.md). Other processes may write
// to it at the same time. What cannot be read is left out; nothing here waits
// for a flush.
//
// Threads  any.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/files/vault.h"
#include "base/hash.h"
#include "hearth/result.h"
#include "serve/journal/journal_records.h"

namespace hearth::serve {

class Journal {
 public:
  static constexpr std::uint64_t kBudget = std::uint64_t{64} << 20;

  // `directory`: of the store, made when missing; empty: in memory alone.
  // `vault`: null: records are plain. kIo when it cannot be written.
  static Result<std::unique_ptr<Journal>> Open(
      const std::string& directory, std::shared_ptr<const Vault> vault,
      std::uint64_t budget = kBudget);
  virtual ~Journal() = default;

  virtual std::optional<SampledIds> Find(const Digest& key) = 0;
  virtual void Put(const Digest& key, const SampledIds& sampled) = 0;
  virtual int n_records() const = 0;
};

}  // namespace hearth::serve
