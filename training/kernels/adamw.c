// The inner optimiser's passes over a gradient: the sum of its squares, and AdamW's step in one reading and writing.
//
// IEEE fp32/fp64 operations in a fixed order only (compiled with -ffp-contract=off): every processor gives the same bits.
// tests/training/test_adamw.py has the slow obvious twins.

#include <math.h>
#include <stdint.h>

#include "clones.h"

enum { LANES = 16 };

// Lane i sums the squares of elements i, i + 16, ... in order; the lanes are then added in pairs, halves apart. A square of
// fp32 is exact in fp64.
CLONES double syn_squares(const float *values, int64_t size) {
    double lane[LANES] = {0};
    int64_t whole = size - size % LANES;
    for (int64_t i = 0; i < whole; i += LANES)
        for (int j = 0; j < LANES; j++) lane[j] += (double)values[i + j] * (double)values[i + j];
    for (int64_t i = whole; i < size; i++) lane[i - whole] += (double)values[i] * (double)values[i];
    for (int width = LANES / 2; width > 0; width /= 2)
        for (int j = 0; j < width; j++) lane[j] += lane[j + width];
    return lane[0];
}

typedef struct {
    float scale;            // of the gradient
    float keep;             // what the weight decay leaves of theta
    float beta1, rest1;     // of the first moment, and 1 - beta1
    float beta2, rest2;     // of the second
    float rate;             // learning rate over the first moment's bias correction
    float root;             // of the second moment's bias correction
    float epsilon;
} Step;

CLONES void syn_adamw(
    float *restrict theta, float *restrict m, float *restrict v, const float *restrict gradient, int64_t size, const Step *step
) {
    const Step s = *step;
    for (int64_t i = 0; i < size; i++) {
        float g = gradient[i] * s.scale;
        float first = m[i] * s.beta1 + g * s.rest1;
        float second = v[i] * s.beta2 + (g * g) * s.rest2;
        m[i] = first;
        v[i] = second;
        theta[i] = theta[i] * s.keep - s.rate * (first / (sqrtf(second) / s.root + s.epsilon));
    }
}
