// The orthonormal two-dimensional DCT-II of a matrix's tiles, and its inverse.
//
// Everything is fp64 sums of fp64 products in a fixed order (compiled with -ffp-contract=off), vector lanes across outputs, and one
// rounding to fp32 at the end: every processor gives the same bits. Values below TINY count as 0 on both sides, so that nothing is
// ever subnormal. tests/training/test_transform.py has the slow obvious twin.

#include <string.h>

#include "chunk.h"
#include "clones.h"

enum { HALF = MAX_EDGE / 2, LANES = 8, GROUPS = MAX_EDGE / LANES + 1, DOWN = 4, ALONG = 2 };
#define TINY 0x1p-100
#define INLINE static inline __attribute__((always_inline))

typedef double Lanes __attribute__((vector_size(LANES * sizeof(double))));

// A tile in fp64; the group of lanes behind each row keeps rows off the same places of the cache.
typedef union {
    Lanes row[MAX_EDGE][GROUPS];
    double at[MAX_EDGE][GROUPS * LANES];
} Tile;

// The basis of n points: cosine 2i (2i + 1) at point j < (n + 1) / 2 (j < n / 2). The other points mirror these.
typedef struct {
    double even[HALF][HALF];
    double odd[HALF][HALF];
} Basis;

// to(i) = table(i, 0) * from(0) + table(i, 1) * from(1) + ..., for i < n. Steps are from one row to the next.
INLINE void multiply(const double *table, int64_t down, int64_t along, int n, int groups, const Lanes *from, int64_t from_step,
                     Lanes *to, int64_t to_step) {
    for (int group = 0; group < groups; group += ALONG)
        for (int i = 0; i < n; i += DOWN) {
            Lanes sum[DOWN][ALONG] = {{{0.0}}};
            for (int j = 0; j < n; j++)
                for (int r = 0; r < DOWN; r++)
                    for (int a = 0; a < ALONG; a++)
                        sum[r][a] += table[(i + r) * down + j * along] * from[j * from_step + group + a];
            for (int r = 0; r < DOWN && i + r < n; r++)
                for (int a = 0; a < ALONG; a++) to[(i + r) * to_step + group + a] = sum[r][a];
        }
}

// Of each row and its mirror the sum and the difference; the middle one of an odd number stays.
INLINE void fold(Tile *tile, int n, int groups) {
    for (int j = 0; j < n / 2; j++)
        for (int group = 0; group < groups; group++) {
            const Lanes near = tile->row[j][group], far = tile->row[n - 1 - j][group];
            tile->row[j][group] = near + far;
            tile->row[n - 1 - j][group] = near - far;
        }
}

// Along the n rows of `from`, which is spoilt: half of the products, as even cosines are symmetric and odd ones antisymmetric.
INLINE void analyse(const Basis *basis, int n, int groups, Tile *from, Tile *to) {
    fold(from, n, groups);
    multiply(basis->even[0], HALF, 1, (n + 1) / 2, groups, from->row[0], GROUPS, to->row[0], 2 * GROUPS);
    multiply(basis->odd[0], HALF, 1, n / 2, groups, from->row[n - 1], -GROUPS, to->row[1], 2 * GROUPS);
}

INLINE void synthesise(const Basis *basis, int n, int groups, const Tile *from, Tile *to) {
    multiply(basis->even[0], 1, HALF, (n + 1) / 2, groups, from->row[0], 2 * GROUPS, to->row[0], GROUPS);
    multiply(basis->odd[0], 1, HALF, n / 2, groups, from->row[1], 2 * GROUPS, to->row[n - 1], -GROUPS);
    fold(to, n, groups);
}

INLINE double significant(double value) { return __builtin_fabs(value) < TINY ? 0.0 : value; }

INLINE int groups_of(int cols) { return (cols + ALONG * LANES - 1) / (ALONG * LANES) * ALONG; }

// Along each row, then along each column. `a` and `b` are buffers.
INLINE void transform_tile(float *flat, const Chunk *chunk, const Basis *bases, int inverse, Tile *a, Tile *b) {
    const int rows = chunk->rows, cols = chunk->cols;
    for (int row = 0; row < rows; row++) {
        const float *from = flat + chunk->start + row * chunk->stride;
        for (int col = 0; col < cols; col++) a->at[col][row] = significant(from[col]);
    }
    if (inverse) synthesise(bases + cols, cols, groups_of(rows), a, b);
    else analyse(bases + cols, cols, groups_of(rows), a, b);
    for (int row = 0; row < rows; row++)
        for (int col = 0; col < cols; col++) a->at[row][col] = b->at[col][row];
    if (inverse) synthesise(bases + rows, rows, groups_of(cols), a, b);
    else analyse(bases + rows, rows, groups_of(cols), a, b);
    for (int row = 0; row < rows; row++) {
        float *to = flat + chunk->start + row * chunk->stride;
        for (int col = 0; col < cols; col++) to[col] = (float)significant(b->at[row][col]);
    }
}

// Every tile in its place; pieces of vectors stay. `bases` by number of points, up to MAX_EDGE.
CLONES void syn_transform(float *flat, const Chunk *chunks, int64_t count, const Basis *bases, int inverse) {
    Tile a, b;
    memset(&a, 0, sizeof a);
    memset(&b, 0, sizeof b);
    for (int64_t c = 0; c < count; c++)
        if (chunks[c].stride) transform_tile(flat, chunks + c, bases, inverse, &a, &b);
}
