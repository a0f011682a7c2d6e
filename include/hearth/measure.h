// Rates of the prompt cache's store on one disk, without a model.
#pragma once

#include <cstdint>
#include <string>

#include "hearth/result.h"

namespace hearth {

struct StoreRates {
  std::uint64_t bytes = 0;  // of keys and values, in blocks of 1.5 MiB
  int n_blocks = 0;
  // Seconds for all of them.
  double disk_write_s = 0;   // one plain file of that size, flushed
  double file_read_s = 0;    // that file read again, 1 MiB at a time
  double memory_copy_s = 0;  // into fresh pages
  double save_s = 0;         // durable, with checksums, names and folders
  double verify_s = 0;       // found, checksums verified, mapped
  double map_s = 0;          // found and mapped, not verified
  double read_s = 0;         // reading every byte of what was mapped
  // With a key file.
  double encrypted_save_s = 0;  // as save_s
  double encrypted_load_s = 0;  // found, decrypted, verified
};

// Writes, finds and reads a store of about `bytes` in a folder of its own below
// `dir`, and deletes it. With `from_disk` the page cache is emptied of its
// files before each load. kInvalidArgument for fewer bytes than a block;
// errors of the disk as they come.
Result<StoreRates> MeasureStore(const std::string& dir, std::uint64_t bytes,
                                bool from_disk);

}  // namespace hearth
