// All ops as C++ functions: what backward formulas and composite ops are written with.
#pragma once
#include <optional>

#include "autograd/destination.h"
#include "autograd/record.h"
#include "ops/copy/cast.h"
#include "ops/copy/factory.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/index/gather.h"
#include "ops/linalg/linalg.h"
#include "ops/linalg/matmul.h"
#include "ops/random/random.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/shape.h"
#include "ops/shape/view.h"
