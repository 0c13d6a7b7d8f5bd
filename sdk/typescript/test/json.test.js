import assert from "node:assert/strict";
import { test } from "node:test";

import { JsonError, parseJson, stringifyJson } from "../dist/index.js";

/** Random numbers that are the same in each run. */
function random(seed) {
  let a = seed;
  const next = () => {
    a = (a + 0x6d2b79f5) | 0;
    let t = Math.imul(a ^ (a >>> 15), 1 | a);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
  return { next, below: (n) => Math.floor(next() * n), of: (list) => list[Math.floor(next() * list.length)] };
}

const strings = ["", "a", "__proto__", "constructor", "toString", "12345678901234567", ": 12345678901234567,", "[-1e400", "\\", '"', "\\\"1e9", "\u2028", "é\ud834\udd1e", "\n\u0000", "a/b~c", "7"];
const floats = [0.5, -1.25e-7, 1e21, 1.5e300, 5e-324, 123456789.125, 1.7976931348623157e308];

/** A JSON value, a text of it, and where its unsafe integers are. */
function draw(r, depth, pointer, unsafe) {
  const space = () => r.of(["", "", "", " ", "\n\t", "\r\n "]);
  switch (r.below(depth > 0 ? 8 : 6)) {
    case 0:
      return r.of([[null, "null"], [true, "true"], [false, "false"]]);
    case 1: {
      const s = r.of(strings);
      return [s, JSON.stringify(s)];
    }
    case 2: {
      const n = r.below(2) ? r.below(1e6) - 5e5 : r.of([Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER, 0]);
      return [n, String(n)];
    }
    case 3: {
      const n = r.of(floats) * (r.below(2) ? 1 : -1);
      return [n, r.below(2) ? String(n) : n.toExponential()];
    }
    case 4:
    case 5: {
      if (r.below(3)) return [7, "7"];
      const digits = r.of(["9007199254740992", "9007199254740993", "18446744073709551616", "1" + "0".repeat(40)]);
      const text = (r.below(2) ? "-" : "") + digits;
      unsafe.push(pointer);
      return [BigInt(text), text];
    }
    case 6: {
      const parts = Array.from({ length: r.below(5) }, (_, i) => draw(r, depth - 1, `${pointer}/${i}`, unsafe));
      return [parts.map(([value]) => value), `[${parts.map(([, text]) => space() + text + space()).join(",")}]`];
    }
    default: {
      const names = [...new Set(Array.from({ length: r.below(5) }, () => r.of(strings)))];
      const value = {}, texts = [];
      for (const name of names) {
        const [member, text] = draw(r, depth - 1, `${pointer}/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`, unsafe);
        Object.defineProperty(value, name, { value: member, enumerable: true, writable: true, configurable: true });
        texts.push(`${space()}${JSON.stringify(name)}${space()}:${space()}${text}`);
      }
      return [value, `{${texts.join(",")}${space()}}`];
    }
  }
}

test("reads what JSON.parse reads, and integers exactly", () => {
  const r = random(1);
  for (let i = 0; i < 3000; i++) {
    const unsafe = [];
    const [value, text] = draw(r, 4, "", unsafe);
    assert.deepEqual(parseJson(text, { bigint: true }), value, text);
    if (unsafe.length === 0) {
      assert.deepEqual(parseJson(text), JSON.parse(text), text);
      continue;
    }
    assert.throws(() => parseJson(text), (e) => e instanceof JsonError && e.code === "integer-range" && unsafe.includes(e.pointer), text);
  }
});

test("writes what JSON.stringify writes, and integers exactly", () => {
  const r = random(2);
  for (let i = 0; i < 3000; i++) {
    const [value] = draw(r, 4, "", []);
    const text = stringifyJson(value);
    assert.deepEqual(parseJson(text, { bigint: true }), value);
    const safe = [JSON.parse(JSON.stringify(value, (_, v) => (typeof v === "bigint" ? null : v)))];
    assert.equal(stringifyJson([safe, 2n ** 64n]), `[${JSON.stringify(safe)},18446744073709551616]`);
  }
});

test("is JSON.stringify where a bigint makes its own code do the work", () => {
  const holes = [1, , 3];
  const odd = {
    date: new Date(0), undefined, f() {}, symbol: Symbol("x"), list: [undefined, () => 1, Symbol("y"), holes], boxed: [new Number(1.5), new String("s"), new Boolean(false)],
    nan: NaN, infinity: -Infinity, zero: -0, map: new Map([[1, 2]]), nested: { toJSON: (name) => "called for " + name }, [Symbol("z")]: 1, bare: Object.assign(Object.create({ inherited: 1 }), { own: 1 }), typed: new Uint8Array(2),
  };
  assert.equal(stringifyJson({ odd, n: 1n }), `{"odd":${JSON.stringify(odd)},"n":1}`);
  assert.equal(stringifyJson([Object(5n)]), "[5]");
  const shared = {};
  assert.equal(stringifyJson([1n, ...Array(600).fill(shared)]), `[1${",{}".repeat(600)}]`);
  for (const nothing of [undefined, () => 1, Symbol("x"), { toJSON: () => undefined }]) assert.equal(stringifyJson(nothing), "null");
});

test("numbers with a fraction or an exponent are doubles, unless they hide an integer", () => {
  for (const text of ["1e16", "1E+300", "6.02214076e23", "9007199254740992.0", "9007199254740993.5", "9.9999999999999992e+22", "1.2345678901234567e+17", "0.12345678901234567890", "1e-400", "-0", "0e999", "123e-2"]) {
    assert.equal(parseJson(text), Number(text), text);
    assert.equal(parseJson(text, { bigint: true }), Number(text), text);
  }
  for (const text of ["9007199254740993.0", "9.007199254740993e15", "-9007199254740993.00e0", "1e309", "123456789012345678901e2"]) {
    for (const bigint of [false, true]) assert.throws(() => parseJson(`{"a/b":[0,${text}]}`, { bigint }), { name: "JsonError", code: "integer-range", pointer: "/a~1b/1" }, text);
  }
});

test("a number that may have been rounded is not written", () => {
  for (const n of [2 ** 53, -(2 ** 53), 12345678901234567890, 1e20]) {
    assert.throws(() => stringifyJson({ list: [{ n }] }), { name: "JsonError", code: "integer-range", pointer: "/list/0/n" });
    assert.equal(stringifyJson({ n: BigInt(n) }), `{"n":${BigInt(n)}}`);
  }
  assert.equal(stringifyJson([2 ** 53 - 1, 1e21, 1.5e300]), "[9007199254740991,1e+21,1.5e+300]");
});

test("texts that agentd refuses are not written", () => {
  assert.throws(() => stringifyJson({ a: ["\ud800"] }), { code: "lone-surrogate", pointer: "/a/0" });
  assert.throws(() => stringifyJson({ "\udfff": 1 }), { code: "lone-surrogate" });
  assert.equal(stringifyJson(["\\ud800", "\ud834\udd1e"]), '["\\\\ud800","\ud834\udd1e"]');
  const cycle = { a: {} };
  cycle.a.b = cycle;
  assert.throws(() => stringifyJson(cycle), { code: "cycle", pointer: "/a/b" });
  const nested = (n) => JSON.parse("[".repeat(n) + "]".repeat(n));
  assert.equal(stringifyJson(nested(512)).length, 1024);
  assert.throws(() => stringifyJson(nested(513)), { code: "too-deep" });
  assert.throws(() => stringifyJson({ get a() { throw new TypeError("mine"); } }), { message: "mine" });
});

test("refuses what JSON.parse refuses", () => {
  for (const text of ["", "{", "[1,]", "01", "1 2", "'a'", '{"a":12345678901234567890', "NaN", '"\n"', "[12345678901234567890,]"]) {
    assert.throws(() => parseJson(text), SyntaxError, text);
  }
});

test("a member __proto__ is a member", () => {
  for (const text of ['{"__proto__":{"admin":true}}', '{"__proto__":{"admin":true},"n":9007199254740993}']) {
    const value = parseJson(text, { bigint: true });
    assert.equal(value.admin, undefined);
    assert.deepEqual(Object.keys(value)[0], "__proto__");
    assert.equal(stringifyJson(value), text);
  }
});
