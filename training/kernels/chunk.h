// A chunk of the flat vector. Included by the kernels that go over an update's chunks.

#ifndef SYN_CHUNK_H
#define SYN_CHUNK_H

#include <stdint.h>

enum { MAX_CHUNK = 4096, MAX_EDGE = 64 };

// `rows` rows of `cols` consecutive values, `stride` apart (0 for a piece of a vector, which is one row), of which k are kept.
typedef struct {
    int64_t start;
    int64_t stride;
    int32_t rows;
    int32_t cols;
    int32_t k;
} Chunk;

#endif
