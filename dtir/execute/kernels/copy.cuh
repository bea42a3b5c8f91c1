// Collectives that move and do not reduce. Word: the type of as many bytes as all addresses, rows and steps are multiples of.

template <int BYTES> struct Word;
template <> struct Word<1> { typedef u8_t Type; };
template <> struct Word<2> { typedef u16_t Type; };
template <> struct Word<4> { typedef u32_t Type; };
template <> struct Word<8> { typedef u64_t Type; };
template <> struct Word<16> { typedef uint4 Type; };

template <int BYTES> __device__ __forceinline__ void copy_word(u64_t from, u64_t to) {
  *(typename Word<BYTES>::Type*)to = *(const typename Word<BYTES>::Type*)from;
}
template <> __device__ __forceinline__ void copy_word<16>(u64_t from, u64_t to) { store16(to, load16<false>(from)); }

// A block of outer x middle rows, each of `row` words that lie one behind the other; strides in bytes.
struct Box { u64_t outer, middle, row, from_outer, from_middle, to_outer, to_middle; };

// Block (source, target), one a blockIdx.(y, z): from in[source] + target * from_step to out[target] + source * to_step.
// all_to_all: from_step picks the block of the target, to_step its place; all_gather into k results: from_step is 0.
template <int BYTES>
__global__ void __launch_bounds__(256) copy_blocks(Table<64> in, Table<64> out, Box box, u64_t from_step, u64_t to_step) {
  int source = (int)blockIdx.y, target = (int)blockIdx.z;
  u64_t from = in.at[source] + (u64_t)target * from_step, to = out.at[target] + (u64_t)source * to_step;
  u64_t words = box.outer * box.middle * box.row;
  if (box.outer * box.middle == 1) {
    for (u64_t word = first_index(); word < words; word += index_step())
      copy_word<BYTES>(from + word * BYTES, to + word * BYTES);
    return;
  }
  for (u64_t word = first_index(); word < words; word += index_step()) {
    u64_t line = word / box.row, place = word - line * box.row;
    u64_t outer = line / box.middle, middle = line - outer * box.middle;
    copy_word<BYTES>(from + outer * box.from_outer + middle * box.from_middle + place * BYTES,
                     to + outer * box.to_outer + middle * box.to_middle + place * BYTES);
  }
}

// Pair number blockIdx.y: `words` words from one address to another (permutes, sends).
template <int BYTES> __global__ void __launch_bounds__(256) copy_pairs(Table<64> from, Table<64> to, u64_t words) {
  for (u64_t word = first_index(); word < words; word += index_step())
    copy_word<BYTES>(from.at[blockIdx.y] + word * BYTES, to.at[blockIdx.y] + word * BYTES);
}

// One array into several places: read once.
template <int BYTES>
__global__ void __launch_bounds__(256) replicate(u64_t from, Table<64> to, int results, u64_t words) {
  for (u64_t word = first_index(); word < words; word += index_step()) {
    typename Word<BYTES>::Type value = *(const typename Word<BYTES>::Type*)(from + word * BYTES);
    for (int result = 0; result < results; result++) *(typename Word<BYTES>::Type*)(to.at[result] + word * BYTES) = value;
  }
}
