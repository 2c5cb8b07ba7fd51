// The choice of the k largest magnitudes of each chunk.

#ifndef SYNTIENCE_SELECT_H
#define SYNTIENCE_SELECT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "chunk.h"

enum { VECTOR_LANES = 16, CACHED_CHUNKS = 512 };

static inline uint32_t bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, 4);
    return bits;
}

static inline float float_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, 4);
    return value;
}

// Work space that goes from chunk to chunk, since what one chunk keeps foretells the next. A candidate is one word: the upper
// 19 bits of its magnitude (its bucket), then its 12 bits of place inside the chunk. Vectors are stored whole where only a
// part of them counts: hence the slack; and the alignment, since stores across the border of two pages are slow.
typedef struct {
    uint32_t expected; // about the bucket of the k-th largest magnitude; must be 0 at first
    uint32_t margin;   // how far below it the next chunk is searched
    int count;         // of candidates; after syn_select_chunk, k
    _Alignas(2048) uint32_t candidate[MAX_CHUNK + VECTOR_LANES]; // in ascending places
} Selection;

enum { PLACE_BITS = 12, BUCKET = 1 << PLACE_BITS, PLACE = BUCKET - 1 };

// The k largest magnitudes of a chunk, in ascending places; of equal ones the lowest places. `ahead`, unless NULL, is fetched
// meanwhile. Returns 0, or -1 where a value is not finite.
int syn_select_chunk(Selection *found, const float *flat, const Chunk *chunk, const Chunk *ahead);

// The tile to fetch while chunk c of those before `last` is searched: near enough to stay in the cache, far enough to arrive
// in time. None where the last cache holds all the chunks, or where the values lie one after the other anyway.
static inline const Chunk *chunk_ahead(const Chunk *chunks, int64_t c, int64_t last, int64_t in_all) {
    return in_all > CACHED_CHUNKS && c + 2 < last && chunks[c + 2].rows > 1 ? chunks + c + 2 : NULL;
}

static inline void write_places(const Selection *found, uint16_t *indices) {
    for (int i = 0; i < found->count; i++) indices[i] = (uint16_t)(found->candidate[i] & PLACE);
}

static inline uint32_t magnitude_at(const float *flat, const Chunk *chunk, uint32_t place) {
    const uint32_t row = place / (uint32_t)chunk->cols;
    return bits_of(flat[chunk->start + row * chunk->stride + (place - row * (uint32_t)chunk->cols)]) & 0x7fffffffu;
}

#endif
