#include "cpu/avx512_begin.h"
