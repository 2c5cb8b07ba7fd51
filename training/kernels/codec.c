// The hot loops of the payload codec: quantisation, the canonical bytes, and the entropy-coded transport. select.c selects.
//
// Integers, comparisons and IEEE fp64/fp32 operations in a fixed order only (compiled with -ffp-contract=off): every
// processor gives the same bits. tests/training/codec_reference.py is the slow obvious twin of each function.

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "select.h"

enum { MAX_LEVELS = 128, INDEX_BITS = 12 };

// ---------------------------------------------------------------- quantisation

// A value is sign * level * scale. The levels lie evenly between ratio / 16 and 1, in units of 1/1024, so that they and
// their squares are exact; scales have six bits of mantissa besides the leading one.
enum { SCALE_SHIFT = 17, RATIOS = 16, LEVEL_UNIT = 1024 };

static int level_units(int levels, int ratio, int level) {
    if (levels == 1) return LEVEL_UNIT;
    int low = ratio * (LEVEL_UNIT / RATIOS), steps = levels - 1;
    return low + ((LEVEL_UNIT - low) * level + steps / 2) / steps;
}

static void level_table(int levels, int ratio, double *table) {
    for (int i = 0; i < levels; i++) table[i] = level_units(levels, ratio, i) / (double)LEVEL_UNIT;
}

// The nearest scale (ties to even) within [2^-40, 2^40]; 0 below.
static float round_scale(double exact) {
    const float most = 1099511627776.0f, least = 1.0f / 1099511627776.0f;
    if (!(exact < most)) return most;
    uint32_t bits = bits_of((float)exact);
    bits += (1u << (SCALE_SHIFT - 1)) - 1 + ((bits >> SCALE_SHIFT) & 1);
    float value = float_of(bits >> SCALE_SHIFT << SCALE_SHIFT);
    return value < least ? 0.0f : value;
}

// What is known of the kept magnitudes of a chunk, descending.
typedef struct {
    int count;
    float sorted[MAX_CHUNK];
    double sums[MAX_CHUNK + 1]; // sums[j]: of the j largest, added one after the other
} Kept;

static int descending(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? 1 : x > y ? -1 : 0;
}

static void order_kept(const float *flat, const Chunk *chunk, const uint16_t *indices, Kept *kept) {
    uint32_t *bits = (uint32_t *)kept->sorted;
    kept->count = chunk->k;
    for (int i = 0; i < chunk->k; i++) bits[i] = magnitude_at(flat, chunk, indices[i]);
    if (chunk->k > 128) {
        qsort(bits, (size_t)chunk->k, sizeof *bits, descending);
    } else {
        for (int i = 1; i < chunk->k; i++) {
            uint32_t value = bits[i];
            int at = i;
            for (; at > 0 && bits[at - 1] < value; at--) bits[at] = bits[at - 1];
            bits[at] = value;
        }
    }
    kept->sums[0] = 0.0;
    for (int i = 0; i < chunk->k; i++) kept->sums[i + 1] = kept->sums[i] + (double)kept->sorted[i];
}

// Two levels: the j largest get 1, the others `low`. Of all j the first that takes most off the squared error, which is
// <a, l>^2 / <l, l> with the best scale <a, l> / <l, l>.
static double best_split(const Kept *kept, double low, int *split) {
    double best = -1.0;
    const double total = kept->sums[kept->count];
    for (int j = 0; j <= kept->count; j++) {
        double dot = low * total + (1.0 - low) * kept->sums[j];
        double square = low * low * kept->count + (1.0 - low * low) * j;
        double gain = square > 0.0 ? dot * dot / square : 0.0;
        if (gain > best) {
            best = gain;
            *split = j;
        }
    }
    return best;
}

static double split_scale(const Kept *kept, double low, int split) {
    double dot = low * kept->sums[kept->count] + (1.0 - low) * kept->sums[split];
    double square = low * low * kept->count + (1.0 - low * low) * split;
    return square > 0.0 ? dot / square : 0.0;
}

static int nearest_level(double magnitude, const double *table, int levels, double scale) {
    int low = 0, high = levels - 1;
    while (low < high) {
        int middle = (low + high) / 2;
        if (2.0 * magnitude > scale * (table[middle] + table[middle + 1])) low = middle + 1;
        else high = middle;
    }
    return low;
}

// More levels: nearest levels and least-squares scale in turn, from the largest magnitude on, a fixed number of times.
static double fit_scale(const Kept *kept, const double *table, int levels, double *gain) {
    double scale = kept->sorted[0];
    *gain = 0.0;
    for (int round = 0; round < 4; round++) {
        double dot = 0.0, square = 0.0;
        for (int i = 0; i < kept->count; i++) {
            double level = table[nearest_level(kept->sorted[i], table, levels, scale)];
            dot += (double)kept->sorted[i] * level;
            square += level * level;
        }
        if (!(square > 0.0)) return 0.0;
        scale = dot / square;
        *gain = dot * dot / square;
    }
    return scale;
}

typedef struct {
    uint16_t *indices; // (E,)
    uint8_t *codes;    // (E,) bit 0: negative, the others: the level
    float *scales;     // (C,)
    uint8_t *ratios;   // (C,)
} Update;

static void quantise_chunk(const float *flat, const Chunk *chunk, int bits, int ratio, const Kept *kept, uint16_t *indices,
                           uint8_t *codes, float *scale_out) {
    const int levels = 1 << (bits - 1);
    double table[MAX_LEVELS], scale;
    uint32_t edge = 0; // two levels: magnitudes from here on get the upper one
    int room = 0;      // ... and so many of those just at the edge
    level_table(levels, ratio, table);
    if (levels == 1) {
        scale = kept->count ? kept->sums[kept->count] / kept->count : 0.0;
    } else if (levels == 2) {
        int split = 0;
        best_split(kept, table[0], &split);
        scale = split_scale(kept, table[0], split);
        if (split > 0) {
            edge = bits_of(kept->sorted[split - 1]);
            for (int i = split - 1; i >= 0 && bits_of(kept->sorted[i]) == edge; i--) room++;
        }
        if (split == 0) edge = 0xffffffffu;
    } else {
        double gain;
        scale = fit_scale(kept, table, levels, &gain);
    }
    *scale_out = round_scale(scale);
    const int cols = chunk->cols;
    for (int i = 0; i < chunk->k; i++) {
        if (*scale_out == 0.0f) {
            indices[i] = (uint16_t)i;
            codes[i] = 0;
            continue;
        }
        int row = indices[i] / cols, col = indices[i] - row * cols;
        uint32_t value = bits_of(flat[chunk->start + row * chunk->stride + col]), magnitude = value & 0x7fffffffu;
        int level = 0;
        if (levels == 2) {
            level = magnitude > edge || (magnitude == edge && room-- > 0);
        } else if (levels > 2) {
            level = nearest_level(float_of(magnitude), table, levels, (double)*scale_out);
        }
        codes[i] = (uint8_t)(level << 1 | value >> 31);
    }
}

// Which ratio takes most off the squared error of a whole tensor, by `gains`.
static void add_gains(const Kept *kept, int levels, double *gains) {
    for (int ratio = 0; ratio < RATIOS; ratio++) {
        double table[MAX_LEVELS], gain;
        int split;
        level_table(levels, ratio, table);
        if (levels == 2) gain = best_split(kept, table[0], &split);
        else fit_scale(kept, table, levels, &gain);
        gains[ratio] += gain;
    }
}

// Chunks [first, last) are those of one tensor. Returns 0, or -1 where a value is not finite, or -2 without memory.
static int encode_tensor(const float *flat, const Chunk *chunks, int64_t first, int64_t last, int64_t in_all,
                         const int64_t *entry_starts, int bits, Update *update) {
    const int levels = 1 << (bits - 1);
    Selection *found = aligned_alloc(_Alignof(Selection), sizeof *found);
    Kept *kept = malloc(sizeof *kept);
    double gains[RATIOS] = {0.0};
    int failed = found && kept ? 0 : -2;
    if (found) found->expected = 0;
    for (int64_t c = first; c < last && !failed; c++) {
        failed = syn_select_chunk(found, flat, chunks + c, chunk_ahead(chunks, c, last, in_all));
        if (failed) break;
        write_places(found, update->indices + entry_starts[c]);
        if (levels == 1) continue;
        order_kept(flat, chunks + c, update->indices + entry_starts[c], kept);
        add_gains(kept, levels, gains);
    }
    int ratio = 0;
    for (int i = 1; i < RATIOS; i++) ratio = gains[i] > gains[ratio] ? i : ratio;
    for (int64_t c = first; c < last && !failed; c++) {
        const Chunk *chunk = chunks + c;
        uint16_t *indices = update->indices + entry_starts[c];
        order_kept(flat, chunk, indices, kept);
        quantise_chunk(flat, chunk, bits, ratio, kept, indices, update->codes + entry_starts[c], update->scales + c);
        update->ratios[c] = update->scales[c] == 0.0f ? 0 : (uint8_t)ratio;
    }
    free(found);
    free(kept);
    return failed;
}

// Selects and quantises a flat vector. `tensors` + 1 chunk numbers in `tensor_chunks` say where each tensor's chunks begin.
int syn_encode(const float *flat, const Chunk *chunks, const int64_t *entry_starts, const int64_t *tensor_chunks,
               int64_t tensors, int bits, uint16_t *indices, uint8_t *codes, float *scales, uint8_t *ratios) {
    Update update = {indices, codes, scales, ratios};
    for (int64_t t = 0; t < tensors; t++) {
        int failed = encode_tensor(flat, chunks, tensor_chunks[t], tensor_chunks[t + 1], tensor_chunks[tensors],
                                   entry_starts, bits, &update);
        if (failed) return failed;
    }
    return 0;
}

// flat[position] += factor of the chunk * decoded value; one product for the value, one for the factor, one sum.
void syn_add(float *flat, const Chunk *chunks, int64_t count, const int64_t *entry_starts, int bits, const uint16_t *indices,
             const uint8_t *codes, const float *scales, const uint8_t *ratios, const float *factors, float floor_) {
    const int levels = 1 << (bits - 1);
    for (int64_t c = 0; c < count; c++) {
        const Chunk *chunk = chunks + c;
        float values[2 * MAX_LEVELS];
        if (scales[c] == 0.0f) continue;
        for (int level = 0; level < levels; level++) {
            float unit = (float)level_units(levels, ratios[c], level) / (float)LEVEL_UNIT;
            float value = scales[c] * unit * factors[c];
            if (value < floor_) value = 0.0f;
            values[2 * level] = value;
            values[2 * level + 1] = -value;
        }
        float *base = flat + chunk->start;
        for (int64_t e = entry_starts[c]; e < entry_starts[c + 1]; e++) {
            int row = indices[e] / chunk->cols, col = indices[e] - row * chunk->cols;
            base[row * chunk->stride + col] += values[codes[e]];
        }
    }
}

// ---------------------------------------------------------------- transport: rANS

// Range asymmetric numeral systems (Duda 2013) with 12-bit static frequencies that travel in front. Two coder states take
// turns, one for the gaps between indices and one for everything else, so that their chains run side by side; bits that no
// model could foretell (signs, low bits of gaps) are a stream of their own.
enum { PRECISION = 12, TOTAL = 1 << PRECISION, ALPHABETS = 3, GAPS = 0, LEVELS = 1, SCALES = 2, SYMBOLS = 128 };
enum { TOP_BITS = 3, EXACT = (1 << TOP_BITS) - 1, NUMBER_SYMBOLS = EXACT + 10 * (1 << TOP_BITS) };
enum { SCALE_BASE = (127 - 40) << 6, SCALE_CODES = (80 << 6) + 1 };
// Symbols of the scales' alphabet above the numbers: an empty chunk, and a chunk with a new ratio (its scale follows).
enum { EMPTY = NUMBER_SYMBOLS, NEW_RATIO = NUMBER_SYMBOLS + 1, SCALE_SYMBOLS = NUMBER_SYMBOLS + 2 };
static const uint32_t STATE_LOW = 1u << 16;

static const int HEAD_BYTES = 12; // lengths of the two streams and the tables, 4 bytes each

static int alphabet_size(int alphabet, int bits) {
    return alphabet == GAPS ? NUMBER_SYMBOLS : alphabet == LEVELS ? 1 << (bits - 1) : SCALE_SYMBOLS;
}

typedef struct {
    uint16_t frequency[SYMBOLS];
    uint16_t start[SYMBOLS];
} Table;

typedef struct {
    uint16_t frequency;
    uint16_t offset; // slot - start of its symbol
    uint8_t symbol;
} Slot;

// A number below 2^13 - 1 as a symbol (its length and top bits) and raw low bits.
static inline int number_symbol(uint32_t value, int *raw_bits) {
    uint32_t plus = value + 1;
    int length = 31 - __builtin_clz(plus);
    if (length < TOP_BITS) {
        *raw_bits = 0;
        return (int)value;
    }
    *raw_bits = length - TOP_BITS;
    return EXACT + ((length - TOP_BITS) << TOP_BITS) + (int)(plus >> *raw_bits) - (1 << TOP_BITS);
}

static inline uint32_t zigzag(int32_t value) {
    return value < 0 ? (uint32_t)-value * 2 - 1 : (uint32_t)value * 2;
}

static inline int32_t unzigzag(uint32_t value) {
    return value & 1 ? -(int32_t)((value + 1) / 2) : (int32_t)(value / 2);
}

// The shorter way round the circle of scales, so that the step from any scale to any other is a number with a symbol.
static inline int32_t around(int32_t step) {
    return step > SCALE_CODES / 2 ? step - SCALE_CODES : step < -SCALE_CODES / 2 ? step + SCALE_CODES : step;
}

// Counts become frequencies that add up to TOTAL, at least 1 for each symbol that occurs.
static void normalise(const uint32_t *counts, int symbols, Table *table) {
    uint64_t total = 0;
    int given = 0, largest = 0;
    for (int i = 0; i < symbols; i++) total += counts[i];
    for (int i = 0; i < symbols; i++) {
        uint64_t share = total ? (counts[i] * (uint64_t)TOTAL + total / 2) / total : 0;
        if (counts[i] && !share) share = 1;
        if (share >= TOTAL && counts[i] != total) share = TOTAL - 1;
        table->frequency[i] = (uint16_t)share;
        given += (int)share;
    }
    // What rounding gave too much or too little goes to the largest, one by one.
    while (given != TOTAL && total) {
        for (int i = largest = 0; i < symbols; i++)
            largest = table->frequency[i] > table->frequency[largest] ? i : largest;
        int step = given > TOTAL ? -1 : 1;
        table->frequency[largest] = (uint16_t)(table->frequency[largest] + step);
        given += step;
    }
}

static void starts_of(Table *table, int symbols) {
    int at = 0;
    for (int i = 0; i < symbols; i++) {
        table->start[i] = (uint16_t)at;
        at += table->frequency[i];
    }
}

typedef struct {
    uint8_t *out;
    int64_t at, limit;
    uint64_t held;
    int count;
} BitWriter;

static void write_bits(BitWriter *writer, uint32_t value, int bits) {
    writer->held |= (uint64_t)value << writer->count;
    writer->count += bits;
    while (writer->count >= 8) {
        if (writer->at < writer->limit) writer->out[writer->at] = (uint8_t)writer->held;
        writer->at++;
        writer->held >>= 8;
        writer->count -= 8;
    }
}

static void end_bits(BitWriter *writer) {
    if (writer->count) write_bits(writer, 0, 8 - writer->count);
}

typedef struct {
    const uint8_t *in;
    int64_t at, size; // `at` runs past `size` where bits are missing; those read as 0
    uint64_t held;
    int count;
} BitReader;

static inline uint32_t read_bits(BitReader *reader, int bits) {
    while (reader->count < bits) {
        if (reader->at + 4 <= reader->size) {
            uint32_t word;
            memcpy(&word, reader->in + reader->at, 4);
            reader->held |= (uint64_t)word << reader->count;
            reader->at += 4;
            reader->count += 32;
        } else {
            uint64_t byte = reader->at < reader->size ? reader->in[reader->at] : 0;
            reader->held |= byte << reader->count;
            reader->at++;
            reader->count += 8;
        }
    }
    uint32_t value = (uint32_t)(reader->held & ((1u << bits) - 1));
    reader->held >>= bits;
    reader->count -= bits;
    return value;
}

// Whether exactly all bytes were read, and what is left of the last one is 0.
static int bits_ended(const BitReader *reader) {
    int64_t used = reader->at * 8 - reader->count;
    return used <= reader->size * 8 && used > reader->size * 8 - 8 && reader->held == 0;
}

// A frequency: 4 bits for its length, then what follows the leading one; runs of absent symbols are counted.
static void write_table(BitWriter *writer, const Table *table, int symbols) {
    for (int i = 0; i < symbols; i++) {
        int frequency = table->frequency[i], length = frequency ? 32 - __builtin_clz((uint32_t)frequency) : 0;
        write_bits(writer, (uint32_t)length, 4);
        if (length > 1) write_bits(writer, (uint32_t)frequency & ((1u << (length - 1)) - 1), length - 1);
        if (length) continue;
        int run = 0;
        while (i + 1 < symbols && run < 15 && !table->frequency[i + 1]) {
            run++;
            i++;
        }
        write_bits(writer, (uint32_t)run, 4);
    }
}

static int read_table(BitReader *reader, Table *table, int symbols) {
    int total = 0;
    memset(table, 0, sizeof *table);
    for (int i = 0; i < symbols; i++) {
        int length = (int)read_bits(reader, 4);
        if (!length) {
            i += (int)read_bits(reader, 4);
            if (i >= symbols) return -1;
            continue;
        }
        if (length > PRECISION + 1) return -1;
        int frequency = 1 << (length - 1);
        if (length > 1) frequency |= (int)read_bits(reader, length - 1);
        total += frequency;
        if (total > TOTAL) return -1;
        table->frequency[i] = (uint16_t)frequency;
    }
    starts_of(table, symbols);
    return total == 0 || total == TOTAL ? 0 : -1;
}

// ---------------------------------------------------------------- encoding: what is to be said, forwards; then backwards

typedef struct {
    uint8_t alphabet;
    uint8_t symbol;
} Said;

typedef struct {
    Said *said;
    int64_t count;
    uint32_t counts[ALPHABETS][SYMBOLS];
    BitWriter raw;
} Script;

static inline void say(Script *script, int alphabet, int symbol) {
    script->said[script->count++] = (Said){(uint8_t)alphabet, (uint8_t)symbol};
    script->counts[alphabet][symbol]++;
}

static inline void say_number(Script *script, int alphabet, uint32_t value) {
    int raw, symbol = number_symbol(value, &raw);
    say(script, alphabet, symbol);
    if (raw) write_bits(&script->raw, (value + 1) & ((1u << raw) - 1), raw);
}

static void say_chunk(Script *script, const Chunk *chunk, int bits, const uint16_t *indices, const uint8_t *codes,
                      float scale_value, int ratio, int32_t *last_scale, int *last_ratio) {
    if (scale_value == 0.0f) {
        say(script, SCALES, EMPTY);
        return;
    }
    if (ratio != *last_ratio) {
        say(script, SCALES, NEW_RATIO);
        write_bits(&script->raw, (uint32_t)ratio, 4);
        *last_ratio = ratio;
    }
    int32_t scale = (int32_t)(bits_of(scale_value) >> SCALE_SHIFT) - SCALE_BASE;
    say_number(script, SCALES, zigzag(around(scale - *last_scale)));
    *last_scale = scale;
    int previous = -1;
    for (int i = 0; i < chunk->k; i++) {
        say_number(script, GAPS, (uint32_t)(indices[i] - previous - 1));
        write_bits(&script->raw, codes[i] & 1, 1);
        if (bits > 1) say(script, LEVELS, codes[i] >> 1);
        previous = indices[i];
    }
}

static int64_t encode_backwards(const Script *script, Table *tables, uint16_t *words, int64_t limit) {
    uint32_t states[2] = {STATE_LOW, STATE_LOW};
    int64_t at = limit; // words are written from the end
    for (int64_t i = script->count; i > 0; i--) {
        const Said *said = script->said + i - 1;
        const Table *table = tables + said->alphabet;
        uint32_t *state = states + (said->alphabet != GAPS);
        uint32_t frequency = table->frequency[said->symbol];
        if (*state >= (frequency << (32 - PRECISION)) && frequency < TOTAL) {
            words[--at] = (uint16_t)*state;
            *state >>= 16;
        }
        *state = (*state / frequency << PRECISION) + *state % frequency + table->start[said->symbol];
    }
    for (int i = 1; i >= 0; i--) {
        words[--at] = (uint16_t)states[i];
        words[--at] = (uint16_t)(states[i] >> 16);
    }
    return limit - at;
}

static void put_u32(uint8_t *out, uint32_t value) {
    for (int i = 0; i < 4; i++) out[i] = (uint8_t)(value >> (8 * i));
}

static uint32_t get_u32(const uint8_t *in) {
    return in[0] | (uint32_t)in[1] << 8 | (uint32_t)in[2] << 16 | (uint32_t)in[3] << 24;
}

// The most bytes that an update of so many entries and chunks can take.
int64_t syn_pack_limit(int64_t entries, int64_t chunks) {
    return HEAD_BYTES + 1024 + 8 * entries + 16 * chunks;
}

// Writes an update into `out`, of syn_pack_limit bytes; returns how many it takes, or -2 without memory.
int64_t syn_pack(const Chunk *chunks, int64_t count, int64_t entries, int bits, const uint16_t *indices,
                 const uint8_t *codes, const float *scales, const uint8_t *ratios, uint8_t *out) {
    const int64_t most = 2 * entries + 2 * count, raw_limit = 3 * entries + 3 * count + 8;
    Script *script = calloc(1, sizeof *script);
    Said *said = malloc(sizeof *said * (size_t)most + 1);
    uint8_t *raw = malloc((size_t)raw_limit);
    uint16_t *words = malloc(sizeof *words * (size_t)(most + 4));
    int64_t size = -2;
    if (script && said && raw && words) {
        Table tables[ALPHABETS];
        script->said = said;
        script->raw = (BitWriter){raw, 0, raw_limit, 0, 0};
        int32_t last_scale = SCALE_CODES / 2;
        int last_ratio = 0;
        for (int64_t c = 0; c < count; c++) {
            say_chunk(script, chunks + c, bits, indices, codes, scales[c], ratios[c], &last_scale, &last_ratio);
            indices += chunks[c].k;
            codes += chunks[c].k;
        }
        end_bits(&script->raw);
        BitWriter head = {out + HEAD_BYTES, 0, 1024, 0, 0};
        for (int i = 0; i < ALPHABETS; i++) {
            memset(tables + i, 0, sizeof *tables);
            normalise(script->counts[i], alphabet_size(i, bits), tables + i);
            starts_of(tables + i, alphabet_size(i, bits));
            write_table(&head, tables + i, alphabet_size(i, bits));
        }
        end_bits(&head);
        int64_t length = encode_backwards(script, tables, words, most + 4);
        put_u32(out, (uint32_t)head.at);
        put_u32(out + 4, (uint32_t)(2 * length));
        put_u32(out + 8, (uint32_t)script->raw.at);
        uint8_t *at = out + HEAD_BYTES + head.at;
        for (int64_t i = most + 4 - length; i < most + 4; i++) {
            *at++ = (uint8_t)words[i];
            *at++ = (uint8_t)(words[i] >> 8);
        }
        memcpy(at, raw, (size_t)script->raw.at);
        size = at - out + script->raw.at;
    }
    free(script);
    free(said);
    free(raw);
    free(words);
    return size;
}

// ---------------------------------------------------------------- decoding

typedef struct {
    const uint8_t *in;
    int64_t at, size;
} WordReader;

static inline uint32_t next_word(WordReader *reader) {
    uint32_t word = 0;
    if (reader->at + 2 <= reader->size) word = reader->in[reader->at] | (uint32_t)reader->in[reader->at + 1] << 8;
    reader->at += 2;
    return word;
}

static inline int hear(uint32_t *state, const Slot *slots, WordReader *words) {
    const Slot slot = slots[*state & (TOTAL - 1)];
    *state = slot.frequency * (*state >> PRECISION) + slot.offset;
    if (*state < STATE_LOW) *state = *state << 16 | next_word(words);
    return slot.symbol;
}

static inline uint32_t number_of(int symbol, BitReader *raw) {
    if (symbol < EXACT) return (uint32_t)symbol;
    int raw_bits = (symbol - EXACT) >> TOP_BITS;
    uint32_t top = (uint32_t)((symbol - EXACT) & ((1 << TOP_BITS) - 1)) + (1u << TOP_BITS);
    return (top << raw_bits | read_bits(raw, raw_bits)) - 1;
}

static void fill_slots(const Table *table, int symbols, Slot *slots) {
    // An alphabet that never occurs gets slots that leave the state as it is: what uses it is refused anyway.
    for (int i = 0; i < TOTAL; i++) slots[i] = (Slot){TOTAL, (uint16_t)i, 255};
    for (int symbol = 0; symbol < symbols; symbol++)
        for (int i = 0; i < table->frequency[symbol]; i++)
            slots[table->start[symbol] + i] = (Slot){table->frequency[symbol], (uint16_t)i, (uint8_t)symbol};
}

typedef struct {
    Slot slots[ALPHABETS][TOTAL];
    uint32_t states[2];
    WordReader words;
    BitReader raw;
    int32_t last_scale;
    int last_ratio;
} Listener;

// Reads scale and ratio; 1 for an empty chunk, 0 for another, -1 for nonsense.
static int hear_scale(Listener *listener, int bits, float *scale, uint8_t *ratio) {
    int symbol = hear(listener->states + 1, listener->slots[SCALES], &listener->words);
    if (symbol == EMPTY) {
        *scale = 0.0f;
        *ratio = 0;
        return 1;
    }
    if (symbol == NEW_RATIO) {
        int fresh = (int)read_bits(&listener->raw, 4);
        if (fresh == listener->last_ratio || bits == 1) return -1;
        listener->last_ratio = fresh;
        symbol = hear(listener->states + 1, listener->slots[SCALES], &listener->words);
    }
    if (symbol >= NUMBER_SYMBOLS) return -1;
    int32_t step = unzigzag(number_of(symbol, &listener->raw));
    if (step != around(step)) return -1;
    int32_t code = (listener->last_scale + step + SCALE_CODES) % SCALE_CODES;
    listener->last_scale = code;
    *scale = float_of((uint32_t)(code + SCALE_BASE) << SCALE_SHIFT);
    *ratio = (uint8_t)listener->last_ratio;
    return 0;
}

static int hear_chunk(Listener *listener, const Chunk *chunk, int bits, uint16_t *indices, uint8_t *codes) {
    const int k = chunk->k, places = chunk->rows * chunk->cols;
    uint32_t state = listener->states[0], other = listener->states[1];
    int index = -1;
    for (int i = 0; i < k; i++) {
        int symbol = hear(&state, listener->slots[GAPS], &listener->words);
        if (symbol >= NUMBER_SYMBOLS) return -1;
        index += 1 + (int)number_of(symbol, &listener->raw);
        if (index > places - (k - i)) return -1;
        indices[i] = (uint16_t)index;
        int code = (int)read_bits(&listener->raw, 1);
        if (bits > 1) {
            int level = hear(&other, listener->slots[LEVELS], &listener->words);
            if (level >= 1 << (bits - 1)) return -1;
            code |= level << 1;
        }
        codes[i] = (uint8_t)code;
    }
    listener->states[0] = state;
    listener->states[1] = other;
    return 0;
}

static int listen(Listener *listener, const uint8_t *in, int64_t size, int bits) {
    if (size < HEAD_BYTES) return -1;
    const int64_t head = get_u32(in), words = get_u32(in + 4), raw = get_u32(in + 8);
    if (HEAD_BYTES + head + words + raw != size || words % 2 != 0) return -1;
    BitReader tables = {in + HEAD_BYTES, 0, head, 0, 0};
    for (int i = 0; i < ALPHABETS; i++) {
        Table table;
        if (read_table(&tables, &table, alphabet_size(i, bits))) return -1;
        fill_slots(&table, alphabet_size(i, bits), listener->slots[i]);
    }
    if (!bits_ended(&tables)) return -1;
    listener->words = (WordReader){in + HEAD_BYTES + head, 0, words};
    listener->raw = (BitReader){in + HEAD_BYTES + head + words, 0, raw, 0, 0};
    for (int i = 0; i < 2; i++) {
        listener->states[i] = next_word(&listener->words) << 16;
        listener->states[i] |= next_word(&listener->words);
        if (listener->states[i] < STATE_LOW) return -1;
    }
    listener->last_scale = SCALE_CODES / 2;
    listener->last_ratio = 0;
    return 0;
}

// What syn_unpack allocates, whatever it reads.
int64_t syn_unpack_memory(void) {
    return sizeof(Listener);
}

// Reads what a stranger sent; 0 if it is an update of exactly these chunks, -1 if it is not, -2 without memory. Every byte
// must be used, and the coder must end in the state that it started from.
int syn_unpack(const uint8_t *in, int64_t size, const Chunk *chunks, int64_t count, int bits, uint16_t *indices,
               uint8_t *codes, float *scales, uint8_t *ratios) {
    Listener *listener = malloc(sizeof *listener);
    if (!listener) return -2;
    int failed = listen(listener, in, size, bits);
    for (int64_t c = 0; c < count && !failed; c++) {
        const int k = chunks[c].k;
        int found = hear_scale(listener, bits, scales + c, ratios + c);
        if (found == 1) {
            for (int i = 0; i < k; i++) {
                indices[i] = (uint16_t)i;
                codes[i] = 0;
            }
        } else {
            failed = found ? -1 : hear_chunk(listener, chunks + c, bits, indices, codes);
        }
        indices += k;
        codes += k;
    }
    if (!failed) {
        if (listener->states[0] != STATE_LOW || listener->states[1] != STATE_LOW) failed = -1;
        if (listener->words.at != listener->words.size || !bits_ended(&listener->raw)) failed = -1;
    }
    free(listener);
    return failed;
}

// ---------------------------------------------------------------- canonical form

static uint8_t *pack_fields(uint8_t *out, const void *values, int wide, int count, int bits) {
    uint32_t held = 0;
    int held_bits = 0;
    for (int i = 0; i < count; i++) {
        held |= (uint32_t)(wide ? ((const uint16_t *)values)[i] : ((const uint8_t *)values)[i]) << held_bits;
        for (held_bits += bits; held_bits >= 8; held_bits -= 8, held >>= 8) *out++ = (uint8_t)held;
    }
    if (held_bits) *out++ = (uint8_t)held;
    return out;
}

// The leaves of the payload's tree one after the other: indices (12 bits each), codes, scale, ratio.
void syn_canonical(const Chunk *chunks, int64_t count, int bits, const uint16_t *indices, const uint8_t *codes,
                   const float *scales, const uint8_t *ratios, uint8_t *out) {
    for (int64_t c = 0; c < count; c++) {
        const int k = chunks[c].k;
        out = pack_fields(out, indices, 1, k, INDEX_BITS);
        out = pack_fields(out, codes, 0, k, bits);
        put_u32(out, bits_of(scales[c]));
        out[4] = ratios[c];
        out += 5;
        indices += k;
        codes += k;
    }
}
