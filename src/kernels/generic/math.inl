// exp and its relatives on sixteen lanes. The same operations in the same order
// on every CPU, hence the same bits; the C library promises neither.

// Within 2 ulp of e^x for -87.3 <= x <= 88.72; exactly 1 for 0.
HEARTH_INLINE Floats ExpInRange(Floats x) {
  // x = n ln 2 + r. Adding 1.5 * 2^23 rounds to an integer and leaves it in the
  // low bits, so no conversion instruction is needed.
  const Floats magic = Splat(0x1.8p23f);
  const Floats shifted = MulAdd(x, Splat(0x1.715476p+0f), magic);
  const Floats n = Sub(shifted, magic);
  Floats r = NegMulAdd(n, Splat(0x1.62e400p-1f), x);
  r = NegMulAdd(n, Splat(0x1.7f7d1cp-20f), r);
  // (e^r - 1 - r) / r^2, minimax on |r| <= ln 2 / 2.
  Floats p = Splat(0x1.6d1272p-10f);
  p = MulAdd(p, r, Splat(0x1.120cd6p-7f));
  p = MulAdd(p, r, Splat(0x1.555518p-5f));
  p = MulAdd(p, r, Splat(0x1.5554dcp-3f));
  p = MulAdd(p, r, Splat(0.5f));
  p = MulAdd(p, r, Splat(1.0f));
  p = MulAdd(p, r, Splat(1.0f));
  return AsFloats(AddInts(AsInts(p), ShiftLeft<23>(AsInts(shifted))));
}

// e^x for x <= 0; 0 below -87.3, where it would be subnormal, so that
// e^-infinity is exactly 0.
HEARTH_INLINE Floats ExpNegative(Floats x) {
  return Select(Less(x, Splat(-87.3f)), Splat(0.0f), ExpInRange(x));
}

// e^x for every x: above 88.72 infinity, NaN stays NaN.
HEARTH_INLINE Floats Exp(Floats x) {
  const Floats result =
      Select(Less(Splat(88.72f), x),
             Splat(std::numeric_limits<float>::infinity()), ExpNegative(x));
  return Select(IsNan(x), x, result);
}

// erfc(z) for z >= 0, relative error below 1e-6 where it matters (z < 5).
HEARTH_INLINE Floats ErfcPositive(Floats z) {
  // erfc(z) = exp(-z^2) * t * P(t), t = 1 / (1 + 0.3 z); P is minimax on z
  // <= 10.
  const Floats t = Div(Splat(1.0f), MulAdd(z, Splat(0.3f), Splat(1.0f)));
  Floats p = Splat(-0.13077087700366974f);
  p = MulAdd(p, t, Splat(0.49193426966667175f));
  p = MulAdd(p, t, Splat(-0.5261516571044922f));
  p = MulAdd(p, t, Splat(0.5645142197608948f));
  p = MulAdd(p, t, Splat(-0.10698336362838745f));
  p = MulAdd(p, t, Splat(0.2205391675233841f));
  p = MulAdd(p, t, Splat(0.14679601788520813f));
  p = MulAdd(p, t, Splat(0.17094911634922028f));
  p = MulAdd(p, t, Splat(0.16917306184768677f));
  const Floats e = Exp(NegMulAdd(z, z, Splat(0.0f)));
  return Mul(e, Mul(p, t));
}

// x / (1 + e^-x). The quotient reaches -0 for very negative x, as it should.
HEARTH_INLINE Floats Silu(Floats x) {
  const Floats e = Exp(Sub(Splat(0.0f), x));
  return Div(x, Add(Splat(1.0f), e));
}

// x / 2 * erfc(-x / sqrt 2): one formula with no cancellation on either side.
HEARTH_INLINE Floats GeluErf(Floats x) {
  const Floats e = ErfcPositive(Mul(Abs(x), Splat(0x1.6a09e6p-1f)));
  const Floats both = Select(Less(x, Splat(0.0f)), e, Sub(Splat(2.0f), e));
  return Mul(Mul(Splat(0.5f), x), both);
}

// x / 2 * (1 + tanh u) = x / (1 + e^(-2u)), u = sqrt(2 / pi) (x + 0.044715
// x^3).
HEARTH_INLINE Floats GeluTanh(Floats x) {
  const Floats cubic = MulAdd(Mul(x, x), Mul(x, Splat(0.044715f)), x);
  const Floats e = Exp(Mul(cubic, Splat(-1.5957691216057308f)));
  return Div(x, Add(Splat(1.0f), e));
}

// Within 4e-7 of tanh x, relative. 1 - 2 / (1 + e^2x) would lose the low bits
// of small results, hence the series near 0.
HEARTH_INLINE Floats Tanh(Floats x) {
  const Floats e = Exp(Mul(x, Splat(2.0f)));
  const Floats far = Sub(Splat(1.0f), Div(Splat(2.0f), Add(Splat(1.0f), e)));
  const Floats square = Mul(x, x);
  Floats p = Splat(-17.0f / 315.0f);
  p = MulAdd(p, square, Splat(2.0f / 15.0f));
  p = MulAdd(p, square, Splat(-1.0f / 3.0f));
  const Floats near = MulAdd(Mul(p, square), x, x);
  return Select(Less(Abs(x), Splat(0.2f)), near, far);
}

HEARTH_INLINE Floats Softcap(Floats x, float cap) {
  return Mul(Tanh(Div(x, Splat(cap))), Splat(cap));
}
