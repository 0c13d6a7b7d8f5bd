// Records what V8 says about random patterns, one line of JSON for each:
//
//	{"pattern": …, "match": [strings that match], "miss": [strings that do not]}
//
// Patterns are those of the language that the package supports, with the flag
// u. The generator favours what engines get wrong: pairs of upper and lower
// case, characters with more than two cases (k K U+212A, s S U+017F, å Å
// U+212B, ß ẞ, σ ς Σ), classes beyond ASCII, negations, borders of words and of
// the text, and counted repetitions. To record again:
//
//	node record.mjs > v8.jsonl
//
// The output depends on the script alone: the generator is seeded, and all
// characters have been assigned since Unicode 10.

let seed = 0x2545f491;
function random(n) { // xorshift32
  seed ^= seed << 13; seed ^= seed >>> 17; seed ^= seed << 5;
  return (seed >>> 0) % n;
}
const pick = (list) => list[random(list.length)];

const pairs = ['aA', 'xX', 'kK\u212A', 'sS\u017F', 'zZ', 'åÅ\u212B', 'ßẞ', 'σςΣ', 'éÉ', 'µμΜ', 'iIİı', 'dDǅ', 'ωΩ\u2126', 'яЯ', '𐐀𐐨'];
const others = ['0', '9', '_', '-', ' ', '.', '\n', '\r', '\u2028', '\u00A0', '\uFEFF', '@', '[', '`', '{', '/', ':', '日', '\u007F', '\u0080', '\uD7FF', '\uE000', '\uFFFD', '😀', '\u{10FFFF}', '\0'];
const all = [...new Set([...pairs.join(''), ...'abcyBCY', ...others])];

const special = new Set('\\^$.*+?()[]{}|/-');
function escaped(c) {
  if (special.has(c)) return '\\' + c;
  const point = c.codePointAt(0);
  switch (random(6)) {
    case 0: return `\\u{${point.toString(16)}}`;
    case 1: return point < 0x10000 ? '\\u' + point.toString(16).padStart(4, '0') : `\\u{${point.toString(16)}}`;
    case 2: if (point < 0x100) return '\\x' + point.toString(16).padStart(2, '0');
  }
  return c;
}

const character = () => random(3) ? pick([...pick(pairs)]) : pick(all);
const sets = ['\\d', '\\D', '\\w', '\\W', '\\s', '\\S'];
const properties = ['\\p{Lu}', '\\P{Lu}', '\\p{Ll}', '\\p{L}', '\\p{Script=Greek}', '\\P{Script=Latin}', '\\p{Nd}', '\\p{ASCII}'];

function range() {
  let [a, b] = [character(), character()];
  if (a.codePointAt(0) > b.codePointAt(0)) [a, b] = [b, a];
  return escaped(a) + '-' + escaped(b);
}

function klass() {
  let body = '';
  if (random(2)) { // both cases and nothing else: what Go folds into one rune
    const pair = [...pick(pairs)];
    body = random(3) ? pair.map(escaped).join('') : escaped(pair[0]) + escaped(pair[1]);
  }
  for (let n = body ? random(2) : 1 + random(3); n > 0; n--) {
    body += [() => escaped(character()), range, () => pick(sets), () => pick(properties)][random(random(3) ? 2 : 4)]();
  }
  return (random(3) ? '[' : '[^') + body + ']';
}

function atom(depth) {
  switch (random(depth > 0 ? 9 : 6)) {
    case 0: case 1: return escaped(character());
    case 2: case 3: return klass();
    case 4: return pick([...sets, '.', '.']);
    case 5: return pick(['\\b', '\\B', '^', '$', ...properties]);
    case 6: return '(?:' + pattern(depth - 1) + ')';
    case 7: return '(' + pattern(depth - 1) + '|' + pattern(depth - 1) + ')';
    default: return '(?:' + pattern(depth - 1) + ')' + pick(['*', '+', '?', '{2}', '{0,3}', '{1,}', '{0}', '+?', '{1,20}']);
  }
}

function repeated(depth) {
  const a = atom(depth);
  if (['\\b', '\\B', '^', '$'].includes(a) || random(4)) return a;
  return /[*+?}]$/.test(a) && a.startsWith('(?:') ? a : a + pick(['*', '+', '?', '{2}', '{0,3}', '{1,}', '*?', '{1,20}']);
}

function pattern(depth) {
  let text = '';
  for (let n = 1 + random(3); n > 0; n--) text += repeated(depth);
  return text;
}

function probes(source) {
  const near = [...new Set([...source].flatMap((c) => [c, c.toLowerCase(), c.toUpperCase()].filter((s) => [...s].length === 1)))];
  const letter = () => random(2) ? pick(near) : character();
  const list = ['', ...all.filter(() => random(4) === 0)];
  for (let i = 0; i < 10; i++) {
    let s = '';
    for (let n = 1 + random(5); n > 0; n--) s += letter();
    list.push(s);
  }
  return [...new Set(list)].filter((s) => s.isWellFormed());
}

const fixed = ['^[aA]$', '^0[xX][0-9a-f]+$', '^[kK]$', '^[sS]$', '[kK]', '[^sS]', '^(?:[xX]|y)+$', '^[\\u212Ak]$', '^k$', '^[\\w]$', '^[^\\W_]+$', '\\b[aA]\\b', '^(?:[aA]{2}|[zZ])*$', '^[iI]$', '^[Σσ]$', '^[Σσς]$', '^[åÅ]$'];
const seen = new Set();
for (let i = 0; seen.size < 1500; i++) {
  let source = fixed[i] ?? pattern(2);
  if (i >= fixed.length && random(2)) source = '^' + source + '$';
  let expression;
  try { expression = new RegExp(source, 'u'); } catch { continue; }
  if (seen.has(source)) continue;
  seen.add(source);
  const verdict = { pattern: source, match: [], miss: [] };
  const strings = i < fixed.length ? all.concat(['0x1f', '0X1F', '0b1', 'aa', 'Aa', 'zZ', 'xy', 'XX', '']) : probes(source);
  for (const s of strings) verdict[expression.test(s) ? 'match' : 'miss'].push(s);
  console.log(JSON.stringify(verdict));
}
