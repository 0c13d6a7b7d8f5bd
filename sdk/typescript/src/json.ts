/**
 * JSON that changes no value in silence. The work is done by `JSON.parse` and `JSON.stringify`; what they may
 * have changed is looked for in the text, and only where something is found, code of this module takes over.
 */
import { JsonError } from "./errors.js";

/** How integers beyond ±(2^53 - 1) are read. */
export interface ReadOptions {
  /** As a `bigint`. Otherwise such an integer is a {@link JsonError}. */
  bigint?: boolean;
}

/** As deep as agentd takes payloads. */
const maxDepth = 512;

/** Only a text with such characters, where a number may begin, may have one that JavaScript rounds. Most have none. */
const suspicious = /(?:^|[:,[\s])-?\d(?:\d{15}|[\d.]*[eE])/;

/** A number as it is written, where JavaScript would read another one. */
class Literal {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }

  /** An integer without fraction and exponent. A number with one of them is a double by its notation. */
  get isInteger(): boolean {
    return /^-?\d+$/.test(this.text);
  }
}

/** The result of {@link parseLoosely}. */
export interface Loose {
  value: unknown;
  /** There are numbers in `value` that are to be settled, by {@link settle}. */
  inexact: boolean;
}

/**
 * Parses one JSON text as `JSON.parse` does, but for numbers that it would change.
 *
 * @throws `SyntaxError`, and {@link JsonError} for an integer that is not safe, and for a fraction or an exponent
 * that hides one.
 */
export function parse(text: string, options: ReadOptions = {}): unknown {
  const { value, inexact } = parseLoosely(text);
  return inexact ? settle(value, options) : value;
}

/** Parses a JSON text, parts of which are settled later. */
export function parseLoosely(text: string): Loose {
  const value: unknown = JSON.parse(text);
  if (!suspicious.test(text) || !hasInexact(text)) return { value, inexact: false };
  return { value: new Reader(text).value(), inexact: true };
}

/** Replaces the numbers in a value of {@link parseLoosely} that JavaScript would change, or refuses them. */
export function settle(value: unknown, options: ReadOptions, pointer = ""): unknown {
  if (value instanceof Literal) {
    if (options.bigint && value.isInteger) return BigInt(value.text);
    throw new JsonError("integer-range", pointer, value.isInteger ? "an integer beyond 2^53, which {bigint: true} reads exactly" : "a number that no double holds");
  }
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) value[i] = settle(value[i], options, `${pointer}/${i}`);
  } else if (typeof value === "object" && value !== null) {
    for (const [name, member] of Object.entries(value)) {
      if (typeof member === "object" && member !== null) set(value, name, settle(member, options, pointer + "/" + escape(name)));
    }
  }
  return value;
}

/**
 * Writes a value as JSON without line breaks, as `JSON.stringify` does; a `bigint` is an integer. What has no
 * form in JSON at all, such as `undefined`, is `null`.
 *
 * @throws {@link JsonError} for a `number` that is an integer and not a safe one (it may have been rounded already), for
 * a lone surrogate, which agentd refuses, and for a value that is nested too deeply or has itself as a part.
 */
export function stringify(value: unknown): string {
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
  } catch (e) {
    if (!(e instanceof TypeError)) throw e; // a getter, toJSON
    return write(value, "", []) ?? "null"; // a bigint or a cycle
  }
  if (text === undefined) return "null";
  // JSON.stringify escapes surrogates only where they are lone.
  const careful = (suspicious.test(text) && hasInexact(text)) || text.includes("\\ud") || (text.length > 2 * maxDepth && depth(text) > maxDepth);
  return careful ? (write(value, "", []) ?? "null") : text;
}

/** Sets a member. An assignment to `__proto__` would change the object itself. */
function set(object: object, name: string, value: unknown): void {
  if (name === "__proto__") Object.defineProperty(object, name, { value, writable: true, enumerable: true, configurable: true });
  else (object as Record<string, unknown>)[name] = value;
}

/** A name as a part of a pointer. */
function escape(name: string): string {
  return name.replaceAll("~", "~0").replaceAll("/", "~1");
}

const quote = 0x22, backslash = 0x5c, minus = 0x2d, plus = 0x2b, point = 0x2e, zero = 0x30, nine = 0x39;

function isDigit(c: number): boolean {
  return c >= zero && c <= nine;
}

/** The index after the string that begins at i, of a valid text. */
function endOfString(text: string, i: number): number {
  for (;;) {
    i = text.indexOf('"', i + 1);
    let escapes = 0;
    while (text.charCodeAt(i - 1 - escapes) === backslash) escapes++;
    if (escapes % 2 === 0) return i + 1;
  }
}

/** The index after the number that begins at i. */
function endOfNumber(text: string, i: number): number {
  for (;; i++) {
    const c = text.charCodeAt(i);
    if (!isDigit(c) && c !== minus && c !== plus && c !== point && (c | 0x20) !== 0x65) return i;
  }
}

/** Reports whether a valid text has a number that JavaScript would change. */
function hasInexact(text: string): boolean {
  for (let i = 0; i < text.length; ) {
    const c = text.charCodeAt(i);
    if (c === quote) {
      i = endOfString(text, i);
    } else if (isDigit(c) || c === minus) {
      const end = endOfNumber(text, i);
      if (end - i > 4 && !isExact(text.slice(i, end))) return true; // 1e309 is the shortest that is not
      i = end;
    } else {
      i++;
    }
  }
  return false;
}

/** Reports whether a number is, as a double, what is written; or is no integer, and a double that is near. */
function isExact(literal: string): boolean {
  const n = Number(literal);
  if (Math.abs(n) <= Number.MAX_SAFE_INTEGER) return true;
  if (!Number.isFinite(n) || /^-?\d+$/.test(literal)) return false;
  const [digits, exponent] = decimal(literal);
  // Beyond 10^17, seventeen digits are how C writes a double. They need not be those that JavaScript writes.
  if (exponent < 0 || (/e/i.test(literal) && Math.abs(n) >= 1e17 && digits.length <= 17)) return true;
  const [same, at] = decimal(String(n));
  return digits === same && exponent === at;
}

/** The digits of a number without zeros at their ends, and the power of ten that they are multiplied with. */
function decimal(literal: string): [digits: string, exponent: number] {
  const [mantissa = "", power = "0"] = literal.replace(/^-/, "").split(/e/i);
  const [whole = "", fraction = ""] = mantissa.split(".");
  const digits = (whole + fraction).replace(/^0+/, "");
  const trimmed = digits.replace(/0+$/, "");
  return [trimmed, Number(power) - fraction.length + digits.length - trimmed.length];
}

/** How deep a valid text is nested. */
function depth(text: string): number {
  let deepest = 0;
  for (let i = 0, now = 0; i < text.length; ) {
    const c = text.charCodeAt(i);
    if (c === quote) {
      i = endOfString(text, i);
      continue;
    }
    if (c === 0x5b || c === 0x7b) deepest = Math.max(deepest, ++now);
    else if (c === 0x5d || c === 0x7d) now--;
    i++;
  }
  return deepest;
}

/** Reads a text that `JSON.parse` has accepted: it need not look for faults. */
class Reader {
  readonly #text: string;
  #i = 0;

  constructor(text: string) {
    this.#text = text;
  }

  /** The next character that is no white space. */
  #peek(): number {
    while (this.#text.charCodeAt(this.#i) <= 0x20) this.#i++;
    return this.#text.charCodeAt(this.#i);
  }

  value(): unknown {
    const c = this.#peek();
    const start = this.#i;
    if (c === 0x5b) return this.#array();
    if (c === 0x7b) return this.#object();
    if (c === quote) return this.#string();
    if (isDigit(c) || c === minus) {
      const literal = this.#text.slice(start, (this.#i = endOfNumber(this.#text, start)));
      return isExact(literal) ? Number(literal) : new Literal(literal);
    }
    this.#i += c === 0x66 ? 5 : 4; // false; true, null
    return c === 0x74 ? true : c === 0x66 ? false : null;
  }

  #string(): string {
    const start = this.#i;
    return JSON.parse(this.#text.slice(start, (this.#i = endOfString(this.#text, start)))) as string;
  }

  /** Passes over the bracket or the comma, and reports whether a part follows. */
  #more(): boolean {
    this.#i++;
    const c = this.#peek();
    if (c !== 0x5d && c !== 0x7d) return true;
    this.#i++;
    return false;
  }

  /** Reports whether there is a comma, and passes over a closing bracket. */
  #next(): boolean {
    if (this.#peek() === 0x2c) return true;
    this.#i++;
    return false;
  }

  #array(): unknown[] {
    const array: unknown[] = [];
    let more = this.#more();
    while (more) {
      array.push(this.value());
      more = this.#next() && this.#more();
    }
    return array;
  }

  #object(): object {
    const object = {};
    let more = this.#more();
    while (more) {
      this.#peek();
      const name = this.#string();
      this.#peek(); // the colon
      this.#i++;
      set(object, name, this.value());
      more = this.#next() && this.#more();
    }
    return object;
  }
}

/** Writes a value as `JSON.stringify` does, and knows where it is. It returns undefined for what is left out. */
function write(value: unknown, pointer: string, within: object[], name = ""): string | undefined {
  if ((typeof value === "object" || typeof value === "function") && value !== null && "toJSON" in value && typeof value.toJSON === "function") {
    value = value.toJSON(name) as unknown;
  }
  if (value instanceof Number || value instanceof String || value instanceof Boolean || value instanceof BigInt) {
    value = value.valueOf();
  }
  switch (typeof value) {
    case "bigint":
      return String(value);
    case "number":
      if (Number.isInteger(value) && !Number.isSafeInteger(value) && Math.abs(value) < 1e21) {
        throw new JsonError("integer-range", pointer, "an integer beyond 2^53 may have been rounded: use a bigint");
      }
      return JSON.stringify(value);
    case "string":
      if (!value.isWellFormed()) throw new JsonError("lone-surrogate", pointer, "a string that is no Unicode");
      return JSON.stringify(value);
    case "boolean":
      return String(value);
    case "object":
      break;
    default:
      return undefined;
  }
  if (value === null) return "null";
  if (within.includes(value)) throw new JsonError("cycle", pointer, "a value that has itself as a part");
  if (within.length >= maxDepth) throw new JsonError("too-deep", pointer, `more than ${maxDepth} levels`);
  within.push(value);
  const parts: string[] = [];
  if (Array.isArray(value)) {
    value.forEach((item: unknown, i) => (parts[i] = write(item, `${pointer}/${i}`, within, String(i)) ?? "null"));
    for (let i = 0; i < value.length; i++) parts[i] ??= "null"; // holes
  } else {
    for (const key of Object.keys(value)) {
      const at = pointer + "/" + escape(key);
      const text = write((value as Record<string, unknown>)[key], at, within, key);
      if (text === undefined) continue;
      if (!key.isWellFormed()) throw new JsonError("lone-surrogate", at, "a name that is no Unicode");
      parts.push(JSON.stringify(key) + ":" + text);
    }
  }
  within.pop();
  return Array.isArray(value) ? `[${parts.join(",")}]` : `{${parts.join(",")}}`;
}
