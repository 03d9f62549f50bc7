// copy: moves elements as raw bytes. Contiguous runs are copied sixteen bytes at a time, transposes through tiles in
// shared memory.
#include "backends/cuda/kernels/elementwise.h"
#include "backends/cuda/kernels/transpose.h"

namespace reel::cuda {

namespace {

template <class Word>
__global__ void copy_elements(OffsetCalculator<2> offsets_of, std::uint32_t places, const Word* in, Word* out) {
  for (std::uint32_t g = static_cast<std::uint32_t>(thread()); g < places;
       g += static_cast<std::uint32_t>(all_threads())) {
    std::int64_t at[2];
    offsets_of.offsets(g, at);
    out[at[1]] = in[at[0]];
  }
}

constexpr int side = 32, tile_rows = 8;  // of a tile; rows that a block reads at once

/// out[r, c] = in[c, r] at each outer index: columns are contiguous in out, rows in in.
template <class Word>
__global__ void transpose_tiles(Transpose t, const Word* in, Word* out) {
  __shared__ Word tile[side][side + 1];  // padded by one to avoid bank conflicts
  const std::int64_t tiles_down = (t.rows + side - 1) / side, tiles_across = (t.columns + side - 1) / side,
                     tiles = tiles_down * tiles_across;
  for (std::int64_t b = blockIdx.x; b < tiles * t.places; b += gridDim.x) {
    std::int64_t at[2];
    t.walk.offsets(static_cast<std::uint32_t>(b / tiles), at);
    const std::int64_t r0 = b % tiles / tiles_across * side, c0 = b % tiles % tiles_across * side;
    for (int j = static_cast<int>(threadIdx.y); j < side; j += tile_rows) {  // adjacent threads: adjacent rows of out
      const std::int64_t r = r0 + threadIdx.x, c = c0 + j;
      if (r < t.rows && c < t.columns) tile[j][threadIdx.x] = in[at[0] + c * t.in_column + r];
    }
    __syncthreads();
    for (int j = static_cast<int>(threadIdx.y); j < side; j += tile_rows) {
      const std::int64_t r = r0 + j, c = c0 + threadIdx.x;
      if (r < t.rows && c < t.columns) out[at[1] + r * t.out_row + c] = tile[threadIdx.x][j];
    }
    __syncthreads();
  }
}

template <class Word>
void copy_words(const StridedLoop<2>& loop, const Word* in, Word* out, cudaStream_t stream) {
  each_part(loop, [&](const StridedLoop<2>& part, const StridedLoop<2>::Offsets& first) {
    if (const auto transpose = as_transpose(part)) {
      const std::int64_t tiles = (transpose->rows + side - 1) / side * ((transpose->columns + side - 1) / side);
      transpose_tiles<<<blocks_for(tiles * transpose->places, 1), dim3(side, tile_rows), 0, stream>>>(
          *transpose, in + first[0], out + first[1]);
    } else {
      const std::int64_t places = part.numel();
      copy_elements<<<blocks_for(places), threads_per_block, 0, stream>>>(
          OffsetCalculator<2>(part), static_cast<std::uint32_t>(places), in + first[0], out + first[1]);
    }
  });
}

struct Same {
  template <class Word>
  __device__ Word operator()(Word x) const {
    return x;
  }
};

/// Is it so many whole words, both of them aligned?
bool in_words(std::size_t word, const void* to, const void* from, std::size_t bytes) {
  return bytes % word == 0 && aligned(to, word) && aligned(from, word);
}

}  // namespace

void Cuda::copy_bytes(void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  if (bytes > few_bytes) {
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream()), "copy");
  } else {
    const std::size_t width = in_words(16, to, from, bytes) ? 16 : in_words(4, to, from, bytes) ? 4 : 1;
    with_word(width, [&]<class Word>(Word) {
      map_all(Same(), static_cast<std::int64_t>(bytes / width), stream(), static_cast<Word*>(to),
              static_cast<const Word*>(from));
    });
  }
  launched("copy", {static_cast<std::int64_t>(bytes)});
}

void Cuda::copy(const CopyArgs& a) {
  const std::int64_t n = a.loop.numel();
  if (n == 0) return;
  const auto inner = a.loop.inner_stride();
  if (a.loop.rank == 0 || (a.loop.rank == 1 && inner[0] == 1 && inner[1] == 1))
    return copy_bytes(a.out, a.in, static_cast<std::size_t>(n) * size_of(a.dtype));
  StridedLoop<2> wide = a.loop;
  constexpr bool may_repeat[] = {false, false};
  const auto per = static_cast<std::int64_t>(16 / size_of(a.dtype));
  if (aligned(a.in, 16) && aligned(a.out, 16) && vectorize(wide, per, may_repeat)) {
    // The strides count elements, all multiples of `per`; vector copies count vectors.
    for (int i = 0; i < wide.rank; ++i) {
      for (std::int64_t& s : wide.strides[static_cast<std::size_t>(i)]) s /= per;
    }
    copy_words(wide, static_cast<const Sixteen*>(a.in), static_cast<Sixteen*>(a.out), stream());
  } else {
    with_word(size_of(a.dtype), [&]<class Word>(Word) {
      copy_words(a.loop, static_cast<const Word*>(a.in), static_cast<Word*>(a.out), stream());
    });
  }
  launched("copy", {n, static_cast<std::int64_t>(size_of(a.dtype))});
}

}  // namespace reel::cuda
