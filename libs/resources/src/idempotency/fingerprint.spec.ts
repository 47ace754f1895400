import { Type, plainToInstance } from 'class-transformer';
import fc from 'fast-check';
import { inspect, isDeepStrictEqual } from 'node:util';
import { fingerprintOf } from './fingerprint.js';

const fingerprint = (input: object, operation = 'POST /v1/orders', path: string[] = []): string =>
  fingerprintOf({ operation, path }, input).toString('hex');

class NewOrder {
  name: string;
  colour = 'brown';
  sizes = [{ width: 1n }];
  note?: string = undefined;
}
const order = (members: object): NewOrder => Object.assign(new NewOrder(), members);

class Card {
  number: string;
}
class Transfer {
  number: string;
}
const subTypes = Object.entries({ card: Card, transfer: Transfer }).map(([name, value]) => ({ name, value }));
const discriminator = { property: 'kind', subTypes };
class Paid {
  @Type(() => Object, { discriminator }) payment: object;
  @Type(() => Object, { discriminator }) payments: object[];
}
const paid = (plain: object): Paid => plainToInstance(Paid, plain);

class WithAccessor {
  #secret = '';
  get secret(): string {
    return this.#secret;
  }
  set secret(secret: string) {
    this.#secret = secret;
  }
  /** Another one at each call. */
  get readAt(): number {
    return performance.now();
  }
}
class Derived extends WithAccessor {}
class Masked {
  constructor(
    readonly number = '',
    readonly currency = 'EUR',
  ) {}
  toJSON(): object {
    return { currency: this.currency };
  }
}
/** As the date classes of libraries: a cache that requests share is among its members. */
class WithCache {
  static readonly shared = { used: 0 };
  readonly cache = WithCache.shared;
  constructor(readonly time: number) {}
  toJSON(): number {
    WithCache.shared.used++;
    return this.time;
  }
}
/** Its items are not all of it. */
class Basket {
  fruits: string[] = [];
  note = '';
  [Symbol.iterator](): Iterator<string> {
    return this.fruits.values();
  }
}

test('a fingerprint does not depend on the order of members, at any depth', () => {
  const one = { name: 'Rex', categoryId: 7n, tags: [{ a: 1, b: 2 }] };
  const other = { tags: [{ b: 2, a: 1 }], categoryId: 7n, name: 'Rex' };
  expect(fingerprint(one)).toBe(fingerprint(other));
  expect(fingerprint({ toJSON: 1, a: 2 })).toBe(fingerprint({ a: 2, toJSON: 1 }));
});

test('a fingerprint is the same for what clients cannot send or do not mean', () => {
  const before = fingerprint({ name: 'Rex' });
  expect(fingerprint({ name: 'Rex', note: undefined })).toBe(before);
  expect(fingerprint({ name: 'Rex', compute: () => 1 })).toBe(before);
  expect(fingerprint({ name: 'Rex', [Symbol('note')]: 1 })).toBe(before);
  expect(fingerprint({ id: 7 })).toBe(fingerprint({ id: 7n }));
  expect(fingerprint({ price: 1.0 })).toBe(fingerprint({ price: JSON.parse('1e0') as number }));
  const at = (text: string): object => ({ at: new Date(text) });
  expect(fingerprint(at('2026-11-22T09:30:00Z'))).toBe(fingerprint(at('2026-11-22T10:30:00+01:00')));
  const derived = (): Derived => Object.assign(new Derived(), { secret: 'a' });
  expect(fingerprint(derived())).toBe(fingerprint(derived()));
  expect(fingerprint(new WithCache(1))).toBe(fingerprint(new WithCache(1)));
});

/** Values that a handler can tell apart. */
const DIFFERENT: readonly unknown[] = [
  // Numbers and texts: int64, digits beyond 2^53, the sign of zero, exponents, numbers beyond a double, normalisation.
  ...[9223372036854775807n, 9223372036854775806n, 9007199254740993n, 9007199254740992n, 7n, '7', 0, -0, 1e100, 1e200],
  ...[Infinity, -Infinity, NaN, null, undefined, 'a', 'b', '\u00e9', 'e\u0301', Symbol('a'), Symbol('b')],
  // Times and bytes, also as their JSON.
  ...[new Date(0), new Date(1), new Date(NaN), new Date(0).toJSON(), Buffer.from('a'), Buffer.from('b')],
  ...[Buffer.from('a').toJSON(), new Uint8Array(4), new Uint32Array(1)],
  // Order, nesting and the ends of texts.
  ...[[1, 2], [2, 1], [[1], 2], [[1, 2]], [1], ['xy', 'z'], ['x', 'yz'], { a: 'xy', b: 'z' }, { a: 'x', b: 'yz' }],
  ...[{}, { name: null }, { a: 1 }, order({ colour: undefined })],
  ...[new Map([['a', 1]]), new Map([['a', 2]]), new Map([['1', 1]]), new Map([[1, 1]]), new Set([1]), new Set([2])],
  // Members besides items, boxed values, what accessors set, what toJSON conceals or returns.
  ...['a', 'b'].map((note) => Object.assign(new Basket(), { note })),
  ...[Object(1) as object, Object(2) as object, new URLSearchParams('a=1'), new URLSearchParams('a=2')],
  ...['a', 'b'].map((secret) => Object.assign(new Derived(), { secret })),
  ...[new Masked('1'), new Masked('2'), new WithCache(1), new WithCache(2)],
  // The class that a discriminator has chosen, of a member and of an item.
  ...['card', 'transfer'].map((kind) => paid({ payment: { kind, number: '1' } })),
  ...['card', 'transfer'].map((kind) => paid({ payments: [{ kind, number: '1' }] })),
];

test('the fingerprints of different values and operations differ', () => {
  const known = new Map([[fingerprint([7n], 'POST /v1/visits'), 'the other operation']]);
  for (const value of DIFFERENT) {
    const found = fingerprint([value]);
    expect([value, known.get(found)]).toEqual([value, undefined]);
    known.set(found, inspect(value));
  }
});

test('a fingerprint ignores members with the default of their class, at any depth, and no others', () => {
  const before = fingerprint({ name: 'Rex' });
  expect(fingerprint(order({ name: 'Rex' }))).toBe(before);
  expect(fingerprint(order({ name: 'Rex', colour: 'brown', sizes: [{ width: 1n }] }))).toBe(before);
  expect(fingerprint({ id: 7n, body: order({ name: 'Rex' }) })).toBe(fingerprint({ id: 7n, body: { name: 'Rex' } }));
  for (const other of [{ colour: 'black' }, { sizes: [] }, { sizes: [{ width: 2n }] }, { note: 'brown' }]) {
    expect(fingerprint(order({ name: 'Rex', ...other }))).not.toBe(before);
  }
});

const LEAVES: unknown[] = [
  ...[0, -0, 1, 1n, '1', 1.5, '1.5', 'a', '', true, 'true', null, 'null', undefined, 'undefined', NaN, 'NaN', Infinity],
  ...[new Date(0), 'Date(0)', new Date(0).toJSON(), Buffer.from('a'), Buffer.from('a').toJSON(), Uint16Array.of(97)],
];
const { tree: input } = fc.letrec<Record<'tree', unknown>>((tie) => {
  const items = fc.array(tie('tree'), { maxLength: 2 });
  const entries = fc.array(
    fc.tuple(fc.constantFrom('a', 'b', '1', '__proto__', 'constructor', 'toString', 'toJSON'), tie('tree')),
    { maxLength: 2 },
  );
  return {
    tree: fc.oneof(
      { maxDepth: 2, withCrossShrink: true },
      fc.constantFrom(...LEAVES),
      items,
      items.map((all) => new Set(all)),
      entries.map((all) => new Map(all)),
      entries.map((all) => Object.fromEntries(all)),
      entries.map((all) => Object.assign(new NewOrder(), Object.fromEntries(all.filter(([name]) => name === 'a')))),
    ),
  };
});

/** The value with the same representation for what does not count. Classes but NewOrder count. */
function meaningOf(value: unknown): unknown {
  if (typeof value === 'number' && Number.isInteger(value) && !Object.is(value, -0)) return BigInt(value);
  if (Array.isArray(value)) return value.map(meaningOf);
  if (value instanceof Set || value instanceof Map) return [value.constructor, ...[...value].map(meaningOf)];
  if (typeof value !== 'object' || value === null || value instanceof Date || ArrayBuffer.isView(value)) return value;
  const isDefault = (name: string): boolean => value instanceof NewOrder && ['colour', 'sizes'].includes(name);
  const sent = Object.entries(value).filter(([name, member]) => member !== undefined && !isDefault(name));
  return Object.fromEntries(sent.map(([name, member]) => [name, meaningOf(member)]));
}

test('two inputs have the same fingerprint exactly if a handler cannot tell them apart', () => {
  fc.assert(
    fc.property(input, input, (one, other) => {
      expect(fingerprint([one]) === fingerprint([other])).toBe(isDeepStrictEqual(meaningOf(one), meaningOf(other)));
    }),
    { numRuns: 5_000 },
  );
});

test('fingerprints of released versions stay valid: of texts, numbers, bigints, defaults and lists', () => {
  class Line {
    quantity = 1;
    name: string;
  }
  class Order {
    colour = 'brown';
  }
  const lines = [{ name: 'é "quoted" \\ \u2028 🐕' }, { quantity: 2, name: '' }];
  const body = Object.assign(new Order(), {
    ...{ name: 'Rex', id: 9223372036854775807n, price: 0.1, huge: 1e100, small: -1.5e-7, count: 9007199254740993n },
    ...{ isSold: true, note: null, map: { 10: 'ten', 9: 'nine', b: 1, a: [], __x: {} }, missing: undefined },
    lines: lines.map((line) => Object.assign(new Line(), line)),
  });
  expect(fingerprint(body)).toBe('528f9d245efd6f99d3632b10f52c1a05de11305c13f45b50d26e24db61847659');
  expect(fingerprint({ id: 7n, body })).toBe('1b2d29adfb99e655313ea7db192de27c0612562d2c2170e87c46de3cf21f6d9b');
});

// Instances of two releases share the keys, so these never change.
test.each([
  [
    'POST /v1/orders',
    [],
    { name: 'Rex', categoryId: 7n },
    '71f0b6edf5c2715b016ed17a54271d20a2b49179d9ce307de2c4f95da777c479',
  ],
  ['POST /v1/loans/:/return', ['21'], {}, '1afaccb1a0c7595c088f77e6ced7a971442f3c806a628b2be2b9425475503c5a'],
])('the fingerprint of %s with %j is that of other releases', (operation, path, input, expected) => {
  expect(fingerprint(input, operation, path)).toBe(expected);
});
