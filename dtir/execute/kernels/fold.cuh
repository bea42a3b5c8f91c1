// Reductions over k members that lie on one device: every element is folded from the left in the order of the members,
// in the accumulator's type, and rounded once. All members' 16 bytes are asked for before the first is used.
//
// Elements [head, head + vectors * LANES) are done 16 bytes at a time; those before and behind, and all where addresses do
// not agree, one by one. Every element is read by the thread that writes it, before it is written: results may take the
// place of operands (IN_PLACE).

template <class T> struct Lanes {
  static const int COUNT = 16 / (int)sizeof(typename T::Store);
  union {
    uint4 packed;
    typename T::Store each[16 / sizeof(typename T::Store)];
  };
};

// Where members and results are: addresses one by one, or at equal distances.
template <int N> struct Listed {
  Table<N> table;
  __device__ __forceinline__ u64_t operator[](int member) const { return table.at[member]; }
};
struct Strided {
  u64_t base, step;
  __device__ __forceinline__ u64_t operator[](int member) const { return base + (u64_t)member * step; }
};

struct Span { u64_t head, vectors, count; };

template <class T, class Out> __device__ __forceinline__ void finish_lanes(
    const typename T::Acc* total, Lanes<Out>* packed) {
#pragma unroll
  for (int lane = 0; lane < Lanes<T>::COUNT; lane++)
    packed[lane / Lanes<Out>::COUNT].each[lane % Lanes<Out>::COUNT] = Out::narrow((typename Out::Acc)total[lane]);
}

// Elements that are done one by one: number `index` of those before the vectors and behind them.
template <class T, class Op, class Out, class In, class To> __device__ __forceinline__ void fold_single(
    const In& in, int members, const To& out, int results, const Span& span, u64_t index) {
  u64_t body = span.vectors * Lanes<T>::COUNT;
  u64_t element = index < span.head ? index : index + body;
  typename T::Acc total = T::widen(((const typename T::Store*)in[0])[element]);
  for (int member = 1; member < members; member++)
    total = Op::apply(total, T::widen(((const typename T::Store*)in[member])[element]));
  typename Out::Store value = Out::narrow((typename Out::Acc)Op::finish(total, members));
  for (int result = 0; result < results; result++) ((typename Out::Store*)out[result])[element] = value;
}

// k known when compiled: everything is unrolled, and UNROLL vectors of every member are in flight a thread.
template <class T, class Op, class Out, int K, int KO, int UNROLL, bool IN_PLACE>
__global__ void __launch_bounds__(256) fold_fixed(Listed<K> in, Listed<KO> out, Span span) {
  const int WIDE = (int)(sizeof(typename Out::Store) / sizeof(typename T::Store));  // vectors of results for one of operands
  u64_t tile = (u64_t)blockDim.x * UNROLL;
  for (u64_t start = (u64_t)blockIdx.x * tile; start < span.vectors; start += (u64_t)gridDim.x * tile) {
    Lanes<T> read[UNROLL][K];
#pragma unroll
    for (int u = 0; u < UNROLL; u++) {
      u64_t vector = start + threadIdx.x + (u64_t)u * blockDim.x;
      if (vector < span.vectors) {
#pragma unroll
        for (int member = 0; member < K; member++)
          read[u][member].packed = load16<IN_PLACE>(in[member] + span.head * sizeof(typename T::Store) + vector * 16);
      }
    }
#pragma unroll
    for (int u = 0; u < UNROLL; u++) {
      u64_t vector = start + threadIdx.x + (u64_t)u * blockDim.x;
      if (vector < span.vectors) {
        typename T::Acc total[Lanes<T>::COUNT];
#pragma unroll
        for (int lane = 0; lane < Lanes<T>::COUNT; lane++) {
          total[lane] = T::widen(read[u][0].each[lane]);
#pragma unroll
          for (int member = 1; member < K; member++)
            total[lane] = Op::apply(total[lane], T::widen(read[u][member].each[lane]));
          total[lane] = Op::finish(total[lane], K);
        }
        Lanes<Out> packed[WIDE];
        finish_lanes<T, Out>(total, packed);
#pragma unroll
        for (int result = 0; result < KO; result++)
#pragma unroll
          for (int part = 0; part < WIDE; part++)
            store16(out[result] + span.head * sizeof(typename Out::Store) + (vector * WIDE + part) * 16, packed[part].packed);
      }
    }
  }
  u64_t singles = span.count - span.vectors * Lanes<T>::COUNT;
  for (u64_t index = first_index(); index < singles; index += index_step())
    fold_single<T, Op, Out>(in, K, out, KO, span, index);
}

// Any k: 8 members in flight, the total in registers.
template <class T, class Op, class Out, class In, class To, bool IN_PLACE>
__global__ void __launch_bounds__(256) fold_any(In in, int members, To out, int results, Span span) {
  const int WIDE = (int)(sizeof(typename Out::Store) / sizeof(typename T::Store));
  const int FLIGHT = 8;
  for (u64_t vector = first_index(); vector < span.vectors; vector += index_step()) {
    u64_t offset = span.head * sizeof(typename T::Store) + vector * 16;
    Lanes<T> read;
    read.packed = load16<IN_PLACE>(in[0] + offset);
    typename T::Acc total[Lanes<T>::COUNT];
#pragma unroll
    for (int lane = 0; lane < Lanes<T>::COUNT; lane++) total[lane] = T::widen(read.each[lane]);
    for (int member = 1; member < members; member += FLIGHT) {
      Lanes<T> flight[FLIGHT];
#pragma unroll
      for (int ahead = 0; ahead < FLIGHT; ahead++)
        if (member + ahead < members) flight[ahead].packed = load16<IN_PLACE>(in[member + ahead] + offset);
#pragma unroll
      for (int ahead = 0; ahead < FLIGHT; ahead++)
        if (member + ahead < members) {
#pragma unroll
          for (int lane = 0; lane < Lanes<T>::COUNT; lane++)
            total[lane] = Op::apply(total[lane], T::widen(flight[ahead].each[lane]));
        }
    }
#pragma unroll
    for (int lane = 0; lane < Lanes<T>::COUNT; lane++) total[lane] = Op::finish(total[lane], members);
    Lanes<Out> packed[WIDE];
    finish_lanes<T, Out>(total, packed);
    for (int result = 0; result < results; result++)
#pragma unroll
      for (int part = 0; part < WIDE; part++)
        store16(out[result] + span.head * sizeof(typename Out::Store) + (vector * WIDE + part) * 16, packed[part].packed);
  }
  u64_t singles = span.count - span.vectors * Lanes<T>::COUNT;
  for (u64_t index = first_index(); index < singles; index += index_step())
    fold_single<T, Op, Out>(in, members, out, results, span, index);
}
