// A decoder for envelopes, written from docs/envelope.md alone. It judges the messages of
// a file of vectors:
//
//	node decode.mjs vectors.json
import { createHmac } from 'node:crypto';
import { readFileSync } from 'node:fs';

class NotJSON extends Error {}

// A Reader finds where values of a text end. It is as strict as the page.
class Reader {
  constructor(text) {
    this.text = text;
    this.at = 0;
  }

  fail(why) {
    throw new NotJSON(`${why} at ${this.at}`);
  }

  space() {
    while (' \t\n\r'.includes(this.text[this.at] ?? 'x')) this.at++;
  }

  accept(c) {
    this.space();
    if (this.text[this.at] !== c) return false;
    this.at++;
    return true;
  }

  expect(c) {
    if (!this.accept(c)) this.fail(`expected ${c}`);
  }

  match(pattern) {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text);
    if (found) this.at += found[0].length;
    return found?.[0];
  }

  string() {
    this.space();
    const raw = this.match(/"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y);
    if (raw === undefined) this.fail('expected a string');
    const text = JSON.parse(raw);
    if (/\p{Surrogate}/u.test(text)) this.fail('a lone surrogate');
    return text;
  }

  // members calls each with the members of an object, one by one; each reads the value.
  members(depth, each) {
    if (depth < 1) this.fail('nested too deeply');
    this.expect('{');
    const names = new Set();
    if (this.accept('}')) return;
    do {
      const name = this.string();
      if (names.has(name)) this.fail('a repeated key');
      names.add(name);
      this.expect(':');
      each(name);
    } while (this.accept(','));
    this.expect('}');
  }

  // value passes over a value and returns what it is: its type, its text, and, for a
  // string, what that stands for.
  value(depth) {
    this.space();
    const from = this.at;
    const type = { '"': 'string', '{': 'object', '[': 'array' }[this.text[from]] ?? 'other';
    let string;
    if (type === 'string') {
      string = this.string();
    } else if (type === 'object') {
      this.members(depth, () => this.value(depth - 1));
    } else if (type === 'array') {
      if (depth < 1) this.fail('nested too deeply');
      this.at++;
      if (!this.accept(']')) {
        do this.value(depth - 1);
        while (this.accept(','));
        this.expect(']');
      }
    } else if (this.match(/-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null/y) === undefined) {
      this.fail('expected a value');
    }
    return { type, string, raw: this.text.slice(from, this.at) };
  }
}

const order = [
  'version', 'kind', 'messageId', 'correlationId', 'causedBy', 'from', 'to', 'capability', 'replyTo', 'deadline', 'tenantId', 'headers', 'payload',
];
const required = ['version', 'kind', 'messageId', 'correlationId', 'from', 'to', 'capability'];
const kindsOfAuth = { __proto__: null, internal: [], hmac: ['keyId', 'signature'], oidc: ['token'], 'oauth2-client': ['token'] };

function isAddress(s) {
  return /^agent:\/\/[a-z0-9][a-z0-9_.-]{0,127}$/.test(s) && !s.includes('..');
}

function isReplyTo(s) {
  return /^(?:nats|memory|kafka|sqs|amqp|mqtt):\/\/[^\u0000-\u0020\u007f]+$/u.test(s);
}

// isGood reports whether a member other than headers and auth keeps its rule.
function isGood(name, v) {
  switch (name) {
    case 'payload':
      return true;
    case 'version':
      return v.raw === '1';
    case 'deadline':
      return /^[1-9][0-9]*$/.test(v.raw) && BigInt(v.raw) <= 2n ** 53n;
    case 'kind':
      return ['request', 'response', 'event'].includes(v.string);
    case 'from':
    case 'to':
      return v.type === 'string' && isAddress(v.string);
    case 'replyTo':
      return v.type === 'string' && isReplyTo(v.string);
    default:
      return v.type === 'string' && v.string !== '';
  }
}

const maxDepth = 512;

// decode returns a message as its members, or the paths of what is wrong with it. It
// throws a NotJSON for what is none.
export function decode(bytes) {
  let text;
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new NotJSON('no UTF-8');
  }
  const r = new Reader(text);
  const message = { members: {}, faults: new Set() };
  r.space();
  if (text[r.at] !== '{') {
    r.value(maxDepth);
    message.faults.add('<root>');
  } else {
    r.members(maxDepth, (name) => readMember(r, message, name));
    for (const name of required) if (!(name in message.members)) message.faults.add(name);
  }
  r.space();
  if (r.at !== text.length) r.fail('more than one value');
  return message;
}

function readMember(r, message, name) {
  if (name === 'headers' || name === 'auth') {
    const v = r.value(maxDepth - 1);
    const inside = new Reader(v.raw);
    const found = [];
    if (v.type === 'object') inside.members(maxDepth, (key) => found.push([key, inside.value(maxDepth)]));
    const texts = Object.fromEntries(found.map(([key, value]) => [key, value.string]));
    const good = name === 'headers' ? found.every(([, value]) => value.type === 'string') : kindsOfAuth[texts.kind]?.every((key) => texts[key]);
    if (v.type !== 'object' || !good) message.faults.add(name);
    message.members[name] = { ...v, found, texts };
    return;
  }
  const v = r.value(maxDepth - 1);
  message.members[name] = v;
  if (!order.includes(name)) message.faults.add('<root>');
  else if (!isGood(name, v)) message.faults.add(name);
}

// signingForm returns what a proof covers.
export function signingForm({ members }) {
  const parts = [];
  for (const name of order) {
    const v = members[name];
    if (v === undefined) continue;
    if (name === 'headers') {
      if (v.found.length === 0) continue;
      parts.push(`"headers":{${v.found.map(([key, value]) => `${JSON.stringify(key)}:${JSON.stringify(value.string)}`).join(',')}}`);
    } else if (name === 'payload') {
      parts.push(`"payload":${v.raw}`);
    } else {
      parts.push(`"${name}":${v.type === 'string' ? JSON.stringify(v.string) : v.raw}`);
    }
  }
  return `{${parts.join(',')}}`;
}

function judge(v, secret, keyId) {
  let message;
  try {
    message = decode(v.messageHex ? Buffer.from(v.messageHex, 'hex') : Buffer.from(v.message));
  } catch (err) {
    if (!(err instanceof NotJSON)) throw err;
    return v.notJSON ? '' : `is no JSON: ${err.message}`;
  }
  if (v.notJSON) return 'is taken for JSON';
  const faults = [...message.faults].sort().join(' ');
  const wanted = [...(v.faults ?? [])].sort().join(' ');
  if (faults !== wanted) return `has faults of "${faults}", not of "${wanted}"`;
  if (v.faults) return '';
  const form = signingForm(message);
  if (form !== v.signingForm) return `has the signing form ${form}`;
  if (v.proven === undefined) return '';
  const auth = message.members.auth.texts;
  const mac = createHmac('sha256', secret).update(form).digest('hex');
  const proven = auth.kind === 'hmac' && auth.keyId === keyId && auth.signature === mac;
  return proven === v.proven ? '' : `is proven: ${proven}`;
}

const { secret, keyId, vectors } = JSON.parse(readFileSync(process.argv[2], 'utf8'));
let failed = 0;
for (const v of vectors) {
  const why = judge(v, secret, keyId);
  if (why === '') continue;
  failed++;
  console.log(`${v.name}: ${why}`);
}
process.exitCode = failed === 0 ? 0 : 1;
