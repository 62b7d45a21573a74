// All ops as C++ functions: what backward formulas and composite ops are written with.
#pragma once
#include <optional>

#include "autograd/destination.h"
#include "autograd/record.h"
#include "ops/arithmetic.h"
#include "ops/cast.h"
#include "ops/factory.h"
#include "ops/gather.h"
#include "ops/linalg.h"
#include "ops/matmul.h"
#include "ops/random.h"
#include "ops/reduce.h"
#include "ops/shape.h"
#include "ops/view.h"
