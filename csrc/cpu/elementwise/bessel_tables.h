// Bessel functions of the first and second kind, from 45-digit values: up to 8 as functions of t = x^2, with two zeros
// of J taken out, so that the digits around them stay; further out as amplitudes of waves, of w = 64 / x^2.
#pragma once

namespace rl {

// J0(x) / ((t - z1^2) (t - z2^2)), a polynomial of t / 32 - 1
inline constexpr double kJ0Near[] = {0x1.2bc29174dd587p-10,  -0x1.15d87e4b8d5b1p-9,  0x1.99e65104a68d3p-10,
                                     -0x1.5059ea69f58a0p-11, 0x1.6409a6fd7b18ap-13,  -0x1.08db6a2de28aap-15,
                                     0x1.250f53798040dp-18,  -0x1.f633ea858ec29p-22, 0x1.577f683b94385p-25,
                                     -0x1.801f7fa416776p-29, 0x1.65ec7d7179bb0p-33,  -0x1.1a4d043572f5fp-37,
                                     0x1.7df1408b8edaap-42,  -0x1.c1bf0c95af860p-47, 0x1.cdf6a922f9295p-52};
// J1(x) / (x (t - z1^2) (t - z2^2)), likewise
inline constexpr double kJ1Near[] = {0x1.98ec1eee7c01ap-13,  -0x1.1adb1329ed86fp-12, 0x1.4c9bd11c0aa3bp-13,
                                     -0x1.c5a7fc38dd1d1p-15, 0x1.9ac7788fbda1dp-17,  -0x1.0af8bb9889cb5p-19,
                                     0x1.06438a6958c8ep-22,  -0x1.941a82672e615p-26, 0x1.f62979d659463p-30,
                                     -0x1.0137e04d892a0p-33, 0x1.ba3fb31fb1659p-38,  -0x1.43c188cda7deep-42,
                                     0x1.98addda3cae96p-47,  -0x1.c2d74fed71ec1p-52, 0x1.b3c4211c57044p-57};
// Y0(x) - 2/pi log(x) J0(x), a Chebyshev series over [0, 64]
inline constexpr double kY0Near[] = {-0x1.0f88700652ecbp-5,  -0x1.190fcad75eca2p-2,  0x1.6ea98ade961a1p-3,
                                     0x1.0bd84f7777bd6p-2,   -0x1.6b1d515347a69p-3,  0x1.82a2a1c96271fp-5,
                                     -0x1.dd9fb881100e6p-8,  0x1.8ad9320695af0p-11,  -0x1.d873fa854ed4dp-15,
                                     0x1.ae5f9e7adde46p-19,  -0x1.35649a4058471p-23, 0x1.68b1c63f94e89p-28,
                                     -0x1.5c457ea1daccep-33, 0x1.1b53ed8a54178p-38,  -0x1.89f1fa5209ce6p-44,
                                     0x1.d9b425efafdd8p-50,  -0x1.f1a7711576130p-56, 0x1.ccd0bf3d9ea0fp-62};
// (Y1(x) - 2/pi (log(x) J1(x) - 1/x)) / x, likewise
inline constexpr double kY1Near[] = {0x1.4ca997b04b826p-9,   -0x1.07927e87fd36bp-6,  -0x1.88db11a1e0337p-4,
                                     0x1.59ea4fc627f66p-4,   -0x1.d020c3798a51ap-6,  0x1.5aadc0f38e31dp-8,
                                     -0x1.504ea6f6291cdp-11, 0x1.cde014f53622dp-15,  -0x1.dadf80f6e35f9p-19,
                                     0x1.7c45af600d3dcp-23,  -0x1.e8a21e8e1cb71p-28, 0x1.01c33ee943bc5p-32,
                                     -0x1.c6f1d25aa2e2ap-38, 0x1.54fcf661706ffp-43,  -0x1.b7b8e4b5d24fcp-49,
                                     0x1.ed24ebd671b40p-55,  -0x1.e58358b5996e3p-61};
// The same up to 2.5, polynomials of t: the first zeros of Y lie there, where the terms of the series would cancel.
inline constexpr double kY0Low[] = {-0x1.2e4d699cbd01fp-4,  0x1.6bbcb41034286p-3,   -0x1.075b1bbf4135ep-6,
                                    0x1.1a6206b7b958bp-11,  -0x1.3e997941fb0b3p-17, 0x1.bce4a5fd94593p-24,
                                    -0x1.a6ee78a9aca3dp-31, 0x1.2393bb22427e7p-38,  -0x1.3102c541352d5p-46,
                                    0x1.f395c053c1839p-55,  -0x1.341006bb51de5p-63};
inline constexpr double kY1Low[] = {-0x1.91866143cbc8ap-3,  0x1.bd3975c75b4a7p-5,   -0x1.835b97894be59p-9,
                                    0x1.2c7dbffcde8eap-14,  -0x1.0a780ac773f7cp-20, 0x1.32e5a4dcd4716p-27,
                                    -0x1.f0ce344e7930bp-35, 0x1.2a4e073648c92p-42,  -0x1.1470e25055b0cp-50,
                                    0x1.96a2bdb05de1cp-59,  -0x1.c9a05cfe6e7a2p-68};
// With c = x - pi/4 - n pi/2, Jn = sqrt(2 / (pi x)) (P cos c - 8/x Q sin c) and Yn = sqrt(2 / (pi x)) (P sin c + 8/x Q
// cos c): polynomials of 2 w - 1.
inline constexpr double kP0[] = {0x1.ffb8dd328503dp-1,   -0x1.193600c1deb33p-11, 0x1.9be00160d9865p-18,
                                 -0x1.b8d2d6f568b1dp-23, 0x1.b7ef13a07a483p-27,  -0x1.4d2f3c6bcc8f1p-30,
                                 0x1.54dc6d1e48781p-33,  -0x1.b5bdbb22bf8c7p-36, 0x1.50dad9b31dc98p-38,
                                 -0x1.2b66a98a8eadep-40, 0x1.143405810de71p-42,  -0x1.20fc72b9a06b6p-44,
                                 0x1.2cca86c6338d9p-45,  -0x1.a9240bf60d14bp-47};
inline constexpr double kQ0[] = {-0x1.fdb5c0b2f3d5bp-7,  0x1.1e9a6138fee30p-14,  -0x1.8c84352847de8p-20,
                                 0x1.3135a89ef0351p-24,  -0x1.858d1bd4489ebp-28, 0x1.61a55a33a65b0p-31,
                                 -0x1.a082aa5004d1dp-34, 0x1.2ba6741e08da4p-36,  -0x1.f95eb26713ccdp-39,
                                 0x1.e40005821f051p-41,  -0x1.01c3980c3ecf0p-42, 0x1.39940138bbc23p-44,
                                 -0x1.97e9ce79c37b7p-46, 0x1.51cdfedb5101dp-48,  -0x1.664076c86d2fap-50,
                                 0x1.351cf3ac934b3p-49,  -0x1.13e5616eb61b8p-50};
inline constexpr double kP1[] = {0x1.003b716033732p0,    0x1.d73b8ea3c1248p-11,  -0x1.0b1541bfbbd42p-17,
                                 0x1.07762640b132fp-22,  -0x1.f96172d037183p-27, 0x1.75eb02dd757b9p-30,
                                 -0x1.78b760be6538cp-33, 0x1.de943b9058a10p-36,  -0x1.6d4b96ca1b17cp-38,
                                 0x1.42a2120f95923p-40,  -0x1.2883a97c0530ap-42, 0x1.35262497b5421p-44,
                                 -0x1.3f5b1671b84fbp-45, 0x1.c1ff43803bc35p-47};
inline constexpr double kQ1[] = {
    0x1.7f323705062fbp-5,  -0x1.938da0a0a6987p-14, 0x1.e8e009ca9282ep-20, -0x1.642312797de7ap-24,
    0x1.b9302a517457ap-28, -0x1.8922dc144ccdep-31, 0x1.c92e6248aa9afp-34, -0x1.45e3d5ca3099ep-36,
    0x1.10b60277006bfp-38, -0x1.03ed5dac7e845p-40, 0x1.19dbe8941e3f7p-42, -0x1.4dddde1854813p-44,
    0x1.3b2af8ab3c895p-46, -0x1.67a9c660f0f8fp-48, 0x1.811d207bb2e69p-48, -0x1.4508fb9daded8p-49};
// The first zeros of J0 and J1, in two parts.
inline constexpr double kJ0Zeros[][2] = {{0x1.33d152e971b40p1, -0x1.0f539d7da258ep-53},
                                         {0x1.6148f5b2c2e45p2, 0x1.75054cd60a517p-54}};
inline constexpr double kJ1Zeros[][2] = {{0x1.ea75575af6f09p1, -0x1.60155a9d1b256p-53},
                                         {0x1.c0ff5f3b47250p2, -0x1.b226d9d243827p-54}};

}  // namespace rl
