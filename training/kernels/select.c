// Exact top-k of magnitudes, a chunk at a time, in one pass over the chunk.
//
// A bound a little below the k-th largest magnitude of the chunks before leaves some more than k candidates, and among these
// alone the exact bound is looked for. Where too few pass, the chunk is searched again with a lower one. The result is a
// matter of integer comparisons alone: it depends neither on the bounds that were tried nor on the vectors that tried them.

#include "select.h"

// The widest vectors that are compiled in, in bits. The tests build narrower libraries and compare.
#ifndef SYN_WIDEST
#define SYN_WIDEST 512
#endif

#if defined(__x86_64__) && defined(__GNUC__)
#include <cpuid.h>
#include <immintrin.h>
#define SYN_X86 SYN_WIDEST
#else
#define SYN_X86 0
#endif

#if defined(__GNUC__)
#define PREFETCH(address) __builtin_prefetch(address)
#define INLINED static inline __attribute__((always_inline))
#else
#define PREFETCH(address) ((void)0)
#define INLINED static inline
#endif

enum { BUCKETS = 0x7ffff000, INFINITE = 0x7f800000, FIRST_MARGIN = 1 << 21, LINE_VALUES = 16 };

typedef int Scan(const float *flat, const Chunk *chunk, const Chunk *ahead, uint32_t least, Selection *found);
typedef int Count(const Selection *found, uint32_t least);
typedef void Keep(Selection *found, uint32_t least);

static inline uint32_t candidate_of(float value, int place) {
    return (bits_of(value) & BUCKETS) | (uint32_t)place;
}

// The rows of a tile lie far apart, where no processor foresees the next one: they are asked for early, one by one.
static inline void fetch_row(const float *flat, const Chunk *ahead, int row) {
    if (!ahead || row >= ahead->rows) return;
    const float *from = flat + ahead->start + row * ahead->stride;
    for (int col = 0; col < ahead->cols; col += LINE_VALUES) PREFETCH(from + col);
}

// ---------------------------------------------------------------- any processor

// All whose bucket reaches `least`, which is one itself; returns how many.
INLINED int scan_plain(const float *flat, const Chunk *chunk, const Chunk *ahead, uint32_t least, Selection *found) {
    int count = 0;
    for (int row = 0; row < chunk->rows; row++) {
        const float *from = flat + chunk->start + row * chunk->stride;
        fetch_row(flat, ahead, row);
        const int first = row * chunk->cols;
        for (int col = 0; col < chunk->cols; col++) {
            uint32_t candidate = candidate_of(from[col], first + col);
            found->candidate[count] = candidate;
            count += candidate >= least;
        }
    }
    return count;
}

// How many candidates reach `least`, which is above 0: the zeros behind the last one don't, so whole vectors are counted.
INLINED int count_plain(const Selection *found, uint32_t least) {
    int count = 0;
    for (int i = 0; i < found->count; i += VECTOR_LANES)
        for (int lane = 0; lane < VECTOR_LANES; lane++) count += found->candidate[i + lane] >= least;
    return count;
}

// Moves what reaches `least` to the front.
INLINED void keep_plain(Selection *found, uint32_t least) {
    int kept = 0;
    for (int i = 0; i < found->count; i++) {
        uint32_t candidate = found->candidate[i];
        found->candidate[kept] = candidate;
        kept += candidate >= least;
    }
}

// ---------------------------------------------------------------- AVX2

#if SYN_X86 >= 256
#define AVX2 __attribute__((target("avx2,bmi,popcnt")))

// Which of 64 values reach a bound, one bit each; `below` is the bound less one (there is only a greater-than).
AVX2 static inline uint64_t reaching(const float *from, __m256i below) {
    const __m256i clear = _mm256_set1_epi32(0x7fffffff);
    uint64_t mask = 0;
    for (int i = 0; i < 64; i += 8) {
        __m256i values = _mm256_and_si256(_mm256_loadu_si256((const __m256i *)(from + i)), clear);
        __m256i above = _mm256_cmpgt_epi32(values, below);
        mask |= (uint64_t)(uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(above)) << i;
    }
    return mask;
}

AVX2 static inline int scan_avx2(const float *flat, const Chunk *chunk, const Chunk *ahead, uint32_t least,
                                 Selection *found) {
    const __m256i below = _mm256_set1_epi32((int)least - 1);
    int count = 0;
    for (int row = 0; row < chunk->rows; row++) {
        const float *from = flat + chunk->start + row * chunk->stride;
        fetch_row(flat, ahead, row);
        const int first = row * chunk->cols;
        int col = 0;
        for (; col + 64 <= chunk->cols; col += 64) {
            for (uint64_t mask = reaching(from + col, below); mask; mask &= mask - 1) {
                int at = col + __builtin_ctzll(mask);
                found->candidate[count++] = candidate_of(from[at], first + at);
            }
        }
        for (; col < chunk->cols; col++) {
            uint32_t candidate = candidate_of(from[col], first + col);
            if (candidate >= least) found->candidate[count++] = candidate;
        }
    }
    return count;
}
#endif

// ---------------------------------------------------------------- AVX-512

#if SYN_X86 >= 512
#define AVX512 __attribute__((target("avx512f,bmi,popcnt")))

// Packs the lanes of `values` that `mask` names, by merging into zeros that the compiler can't see through: in the form that
// zeroes by itself the instruction waits for what its register held before, and the chain of those waits doubles the time.
AVX512 static inline __m512i packed(__mmask16 mask, __m512i values) {
    __m512i zeros = _mm512_setzero_si512();
    __asm__("" : "+v"(zeros));
    return _mm512_mask_compress_epi32(zeros, mask, values);
}

AVX512 static inline int64_t add_packed(Selection *found, int64_t count, __mmask16 mask, __m512i candidates) {
    _mm512_storeu_si512(found->candidate + count, packed(mask, candidates));
    return count + __builtin_popcount(mask);
}

// The lanes of a vector that begins at `at` of `size` values.
AVX512 static inline __mmask16 lanes_inside(int at, int size) {
    return size - at >= 16 ? 0xffff : (__mmask16)((1u << (size - at)) - 1);
}

AVX512 static inline int scan_avx512(const float *flat, const Chunk *chunk, const Chunk *ahead, uint32_t least,
                                     Selection *found) {
    enum { A_AND_B_OR_C = 0xea };
    const __m512i buckets = _mm512_set1_epi32(BUCKETS), bound = _mm512_set1_epi32((int)least);
    const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const int cols = chunk->cols;
    int64_t count = 0;
    for (int row = 0; row < chunk->rows; row++) {
        const float *from = flat + chunk->start + row * chunk->stride;
        fetch_row(flat, ahead, row);
        __m512i places = _mm512_add_epi32(lanes, _mm512_set1_epi32(row * cols));
        int col = 0;
        while (col + 64 <= cols) {
            for (int i = 0; i < 4; i++, col += 16) {
                __m512i values = _mm512_loadu_si512(from + col);
                __m512i candidates = _mm512_ternarylogic_epi32(values, buckets, places, A_AND_B_OR_C);
                count = add_packed(found, count, _mm512_cmpge_epi32_mask(candidates, bound), candidates);
                places = _mm512_add_epi32(places, _mm512_set1_epi32(16));
            }
        }
        for (; col < cols; col += 16) {
            const __mmask16 inside = lanes_inside(col, cols);
            __m512i values = _mm512_maskz_loadu_epi32(inside, from + col);
            __m512i candidates = _mm512_ternarylogic_epi32(values, buckets, places, A_AND_B_OR_C);
            count = add_packed(found, count, _mm512_mask_cmpge_epi32_mask(inside, candidates, bound), candidates);
            places = _mm512_add_epi32(places, _mm512_set1_epi32(16));
        }
    }
    return (int)count;
}

AVX512 static inline int count_avx512(const Selection *found, uint32_t least) {
    const __m512i bound = _mm512_set1_epi32((int)least);
    int count = 0;
    for (int i = 0; i < found->count; i += VECTOR_LANES) {
        __m512i candidates = _mm512_loadu_si512(found->candidate + i);
        count += __builtin_popcount(_mm512_cmpge_epi32_mask(candidates, bound));
    }
    return count;
}

AVX512 static inline void keep_avx512(Selection *found, uint32_t least) {
    const __m512i bound = _mm512_set1_epi32((int)least);
    int64_t kept = 0;
    for (int i = 0; i < found->count; i += VECTOR_LANES) {
        __m512i candidates = _mm512_loadu_si512(found->candidate + i);
        kept = add_packed(found, kept, _mm512_cmpge_epi32_mask(candidates, bound), candidates);
    }
}
#endif

// ---------------------------------------------------------------- the choice

INLINED uint32_t largest(const Selection *found) {
    uint32_t most = 0;
    for (int i = 0; i < found->count; i += VECTOR_LANES)
        for (int lane = 0; lane < VECTOR_LANES; lane++)
            most = found->candidate[i + lane] > most ? found->candidate[i + lane] : most;
    return most;
}

// The largest bucket that k candidates reach, or a lower one that no more than k do; and how many. By the secant through the
// last two counts, which fall evenly over so short a way; every fourth time by halves, so that it ends.
INLINED uint32_t find_bound(Count *count_reaching, const Selection *found, int k, uint32_t low, uint32_t high, int *reach) {
    int low_count = found->count, before_count = low_count; // low_count >= k > those that reach `high`
    uint32_t before = low, at = found->expected;
    for (int turn = 1; low_count != k && high - low > BUCKET; turn++) {
        if (at <= low || at >= high || turn % 4 == 0) at = low + ((high - low) / 2 & BUCKETS);
        int count = count_reaching(found, at);
        int64_t rise = count - before_count, step = rise ? ((int64_t)at - before) * (k - count) / rise : 0;
        before = at;
        before_count = count;
        if (count >= k) {
            low = at;
            low_count = count;
        } else {
            high = at;
        }
        int64_t next = (int64_t)at + step;
        at = next > low && next < high ? (uint32_t)next & BUCKETS : low;
    }
    *reach = low_count;
    return low;
}

// Of those in the lowest bucket only the largest stay, so that there are k; of equal ones the first.
static void settle_bucket(Selection *found, const float *flat, const Chunk *chunk, uint32_t bucket) {
    uint16_t lower[MAX_CHUNK]; // the bits of their magnitudes below the bucket's
    int size = 0;
    for (int i = 0; i < found->count; i++) {
        if ((found->candidate[i] & BUCKETS) != bucket) continue;
        lower[size++] = (uint16_t)(magnitude_at(flat, chunk, found->candidate[i] & PLACE) % BUCKET);
    }
    const int wanted = chunk->k - (found->count - size);
    int least = 0, equal = 0, room = wanted; // `least`: the largest that so many reach
    for (int step = BUCKET / 2; step; step /= 2) {
        int reach = 0;
        for (int i = 0; i < size; i++) reach += lower[i] >= least + step;
        if (reach >= wanted) least += step;
    }
    for (int i = 0; i < size; i++) room -= lower[i] > least;
    int kept = 0, seen = 0;
    for (int i = 0; i < found->count; i++) {
        const uint32_t candidate = found->candidate[i];
        if ((candidate & BUCKETS) == bucket) {
            const int value = lower[seen++];
            if (value < least || (value == least && equal++ >= room)) continue;
        }
        found->candidate[kept++] = candidate;
    }
    found->count = kept;
}

// The first chunk has nothing to go by but its own first values.
static void expect_first(Selection *found, const float *flat, const Chunk *chunk) {
    for (int col = 0; col < chunk->cols && col < 64; col++) {
        uint32_t bucket = candidate_of(flat[chunk->start + col], 0);
        found->expected = bucket > found->expected ? bucket : found->expected;
    }
    found->margin = FIRST_MARGIN;
}

INLINED int select_with(Scan *scan, Count *count_reaching, Keep *keep, Selection *found, const float *flat,
                        const Chunk *chunk, const Chunk *ahead) {
    const int k = chunk->k;
    if (!found->expected) expect_first(found, flat, chunk);
    uint32_t least = found->expected > found->margin ? (found->expected - found->margin) & BUCKETS : 0;
    while ((found->count = scan(flat, chunk, ahead, least, found)) < k) {
        found->margin = found->margin < 1u << 30 ? 2 * found->margin : found->margin;
        least = least > found->margin ? (least - found->margin) & BUCKETS : 0;
    }
    // Far above k the margin is too wide; else it shrinks slowly, until one chunk in some fifty is searched twice.
    found->margin -= found->count > 4 * k ? found->margin / 8 : found->margin / 64;
    memset(found->candidate + found->count, 0, sizeof *found->candidate * VECTOR_LANES);
    const uint32_t most = largest(found);
    if (most >= INFINITE) return -1;
    int reach;
    uint32_t bound = find_bound(count_reaching, found, k, least, (most & BUCKETS) + BUCKET, &reach);
    keep(found, bound);
    found->count = reach;
    if (reach > k) settle_bucket(found, flat, chunk, bound);
    int64_t change = (int64_t)bound - found->expected;
    if (change > -FIRST_MARGIN && change < FIRST_MARGIN) change /= 4; // chance; what is more is another kind of chunk
    found->expected = (uint32_t)(found->expected + change) & BUCKETS;
    return 0;
}

static int select_plain(Selection *found, const float *flat, const Chunk *chunk, const Chunk *ahead) {
    return select_with(scan_plain, count_plain, keep_plain, found, flat, chunk, ahead);
}

#if SYN_X86 >= 256
AVX2 static int select_avx2(Selection *found, const float *flat, const Chunk *chunk, const Chunk *ahead) {
    return select_with(scan_avx2, count_plain, keep_plain, found, flat, chunk, ahead);
}
#endif

#if SYN_X86 >= 512
AVX512 static int select_avx512(Selection *found, const float *flat, const Chunk *chunk, const Chunk *ahead) {
    return select_with(scan_avx512, count_avx512, keep_avx512, found, flat, chunk, ahead);
}
#endif

#if SYN_X86
// The widest vectors, in bits, that processor and system know, besides bit counting. Asked of the processor itself, since
// __builtin_cpu_supports says no to everything under some compilers.
static int ask_widest_vectors(void) {
    enum { POPCNT = 1 << 23, OSXSAVE = 1 << 27, BMI1 = 1 << 3, AVX2_BIT = 1 << 5, AVX512F = 1 << 16, YMM = 0x6, ZMM = 0xe6 };
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & POPCNT) || !(c & OSXSAVE)) return 0;
    unsigned saved, high;
    __asm__("xgetbv" : "=a"(saved), "=d"(high) : "c"(0));
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(b & BMI1)) return 0;
    if ((b & AVX512F) && (saved & ZMM) == ZMM) return 512;
    return (b & AVX2_BIT) && (saved & YMM) == YMM ? 256 : 0;
}

// Remembered, for the question takes longer than many a chunk where the machine is a virtual one.
static int widest_vectors(void) {
    static int known = -1;
    int widest = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (widest >= 0) return widest;
    widest = ask_widest_vectors();
    __atomic_store_n(&known, widest, __ATOMIC_RELAXED);
    return widest;
}
#endif

int syn_select_chunk(Selection *found, const float *flat, const Chunk *chunk, const Chunk *ahead) {
#if SYN_X86 >= 512
    if (widest_vectors() >= 512) return select_avx512(found, flat, chunk, ahead);
#endif
#if SYN_X86 >= 256
    if (widest_vectors() >= 256) return select_avx2(found, flat, chunk, ahead);
#endif
    return select_plain(found, flat, chunk, ahead);
}

// The selection alone, for the tests and the benchmark: fills `indices`. Returns as syn_select_chunk.
int syn_select(const float *flat, const Chunk *chunks, int64_t count, const int64_t *entry_starts, uint16_t *indices) {
    Selection found;
    found.expected = 0;
    for (int64_t c = 0; c < count; c++) {
        if (syn_select_chunk(&found, flat, chunks + c, chunk_ahead(chunks, c, count, count))) return -1;
        write_places(&found, indices + entry_starts[c]);
    }
    return 0;
}
