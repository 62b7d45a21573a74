// CPU kernels are compiled once per instruction set; everything they define lives in namespace RL_ISA,
// which the build sets to `baseline` or `avx2`. A new instruction set is one line in CMakeLists.txt
// and one row in cpu/choose.cpp.
#pragma once
#ifndef RL_ISA
#error "compile CPU kernels through CMakeLists.txt, which sets RL_ISA"
#endif
