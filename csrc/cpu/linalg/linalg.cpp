#include "cpu/linalg/linalg.h"

namespace rl::cpu {

const LinalgKernels linalg_kernels = {
    by_rows,        lu_factor,
    lu_solve,       inverse,
    cholesky,       cholesky_inverse,
    cholesky_solve, triangular_solve,
    is_tall,        qr_tall,
    geqrf,          orgqr,
    ormqr,          svd,
    eigh,           eig,
    lstsq,          ldl_factor,
    ldl_solve,
};

}  // namespace rl::cpu
