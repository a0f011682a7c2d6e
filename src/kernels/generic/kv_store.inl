// Writes one token into a KV tile.

void StoreKey(KvFormat format, const float* key, int head_dim, std::byte* keys,
              int stride, int slot) {
  const std::int64_t width = KvRowBytes(format, 1);
  std::byte* out = keys + slot * width;
  const std::int64_t step = stride * width;
  for (int d = 0; d < head_dim; ++d, out += step) {
    switch (format) {
      case KvFormat::kInt8:  // never one by one: seal_rows
      case KvFormat::kInt4:
      case KvFormat::kF32:
        StoreLe(out, key[d]);
        break;
      case KvFormat::kF16:
        StoreLe(out, ToF16(key[d]).bits);
        break;
      case KvFormat::kBF16:
        StoreLe(out, ToBF16(key[d]).bits);
        break;
    }
  }
}

void StoreValue(KvFormat format, const float* value, int head_dim,
                std::byte* values, int slot) {
  const std::int64_t width = KvRowBytes(format, 1);
  // A value row is a key column whose slots lie side by side.
  StoreKey(format, value, head_dim, values + slot * head_dim * width, 1, 0);
}
