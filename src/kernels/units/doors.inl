// What the translation units of one instruction set call of each other.
// Included in the namespace of the instruction set.

// Of kernels.h, for weights in blocks.
void MatmulBlocks(const WeightMatrix& w, const std::byte* packed, int n_rows,
                  std::int64_t n_begin, std::int64_t n_end, const float* bias,
                  float* y, std::int64_t y_stride, std::byte* scratch);
std::size_t BlocksScratchBytes(const WeightMatrix& w, int n_rows);
std::size_t PackedRowBytes(DType weight, std::int64_t n_in);
void PackRow(DType weight, const float* x, std::int64_t n_in,
             std::byte* packed);

// Of kernels.h, for weights that are read as floats.
void MatmulFloats(const WeightMatrix& w, const std::byte* packed, int n_rows,
                  std::int64_t n_begin, std::int64_t n_end, const float* bias,
                  float* y, std::int64_t y_stride, std::byte* scratch);
std::size_t FloatsScratchBytes(const WeightMatrix& w, int n_rows);
void DequantizeFloats(const WeightMatrix& w, std::int64_t row, float* out);
