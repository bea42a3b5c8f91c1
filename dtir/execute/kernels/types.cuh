// Element types and reductions. A type says how it lies in memory (Store), in what it is accumulated (Acc), and in what
// sums and products of it wrap (Wrap: unsigned integers, for which C++ defines that).

template <class S, class W> struct Plain {
  typedef S Store;
  typedef S Acc;
  typedef W Wrap;
  static __device__ __forceinline__ Acc widen(Store value) { return value; }
  static __device__ __forceinline__ Store narrow(Acc value) { return value; }
};

struct f32 : Plain<float, float> {};
struct f64 : Plain<double, double> {};
struct i8 : Plain<signed char, u32_t> {};
struct i16 : Plain<short, u32_t> {};
struct i32 : Plain<int, u32_t> {};
struct i64 : Plain<long long, u64_t> {};
struct u8 : Plain<u8_t, u32_t> {};
struct u16 : Plain<u16_t, u32_t> {};
struct u32 : Plain<u32_t, u32_t> {};
struct u64 : Plain<u64_t, u64_t> {};

struct f16 {
  typedef u16_t Store;
  typedef float Acc;
  typedef float Wrap;
  static __device__ __forceinline__ Acc widen(Store bits) { return widen_half(bits); }
  static __device__ __forceinline__ Store narrow(Acc value) { return narrow_half(value); }
};

struct bf16 {
  typedef u16_t Store;
  typedef float Acc;
  typedef float Wrap;
  static __device__ __forceinline__ Acc widen(Store bits) { return bits_to_float((u32_t)bits << 16); }
  static __device__ __forceinline__ Store narrow(Acc value) { return narrow_bfloat(value); }
};

// -- reductions ----------------------------------------------------------------------------------------------------------
// `apply` folds one more member into a running total; `finish` is done once, at the end. NaN wins over numbers.

template <class T> struct Total {
  typedef typename T::Acc Acc;
  static __device__ __forceinline__ Acc finish(Acc total, int) { return total; }
};

template <class T> struct Sum : Total<T> {
  typedef typename T::Acc Acc;
  typedef typename T::Wrap Wrap;
  static __device__ __forceinline__ Acc apply(Acc a, Acc b) { return (Acc)((Wrap)a + (Wrap)b); }
};

template <class T> struct Product : Total<T> {
  typedef typename T::Acc Acc;
  typedef typename T::Wrap Wrap;
  static __device__ __forceinline__ Acc apply(Acc a, Acc b) { return (Acc)((Wrap)a * (Wrap)b); }
};

template <class T> struct Max : Total<T> {
  typedef typename T::Acc Acc;
  static __device__ __forceinline__ Acc apply(Acc a, Acc b) { return a >= b || a != a ? a : b; }
};

template <class T> struct Min : Total<T> {
  typedef typename T::Acc Acc;
  static __device__ __forceinline__ Acc apply(Acc a, Acc b) { return a <= b || a != a ? a : b; }
};

template <class T> struct And : Total<T> {
  typedef typename T::Acc Acc;
  static __device__ __forceinline__ Acc apply(Acc a, Acc b) { return (Acc)(a & b); }
};

template <class T> struct Or : Total<T> {
  typedef typename T::Acc Acc;
  static __device__ __forceinline__ Acc apply(Acc a, Acc b) { return (Acc)(a | b); }
};

template <class T> struct Xor : Total<T> {
  typedef typename T::Acc Acc;
  static __device__ __forceinline__ Acc apply(Acc a, Acc b) { return (Acc)(a ^ b); }
};

template <class A> struct Quotient {  // integers are rounded down
  static __device__ __forceinline__ A of(A total, int members) {
    A divisor = (A)members, quotient = (A)(total / divisor);
    return total % divisor != 0 && total < 0 ? (A)(quotient - 1) : quotient;
  }
};
template <> struct Quotient<float> {
  static __device__ __forceinline__ float of(float total, int members) { return total / (float)members; }
};
template <> struct Quotient<double> {
  static __device__ __forceinline__ double of(double total, int members) { return total / (double)members; }
};

template <class T> struct Average : Sum<T> {
  typedef typename T::Acc Acc;
  static __device__ __forceinline__ Acc finish(Acc total, int members) { return Quotient<Acc>::of(total, members); }
};
