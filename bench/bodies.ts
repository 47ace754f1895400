import { ApplicationConfig } from '@nestjs/core';
import { InputPipe } from '#input';
import { JSON_LIMITS, readJson } from '#json';
import { NewPet } from '../src/pets/pet.dto.js';

/*
 * The cost of a body of the largest size. Whatever a client puts into it, it costs at most three times the time of the most
 * expensive ordinary body of the same size, measured in this process, without a connection. All comparisons are ratios,
 * because other work of the machine slows both sides. `faults/overload` holds the bound of memory. Prints the dearest bodies;
 * the exit code is 1 if one costs more.
 */
const MAX_BODY_BYTES = 65_536;
/** As a multiple of the cost of the most expensive ordinary body. */
const MAX_RATIO = 3;

/** A body of the largest size may have more values and names than are taken: then it costs no more than to count them. */
const { values: MAX_VALUES } = JSON_LIMITS;

/** Repeats pieces between a beginning and an end until the body has the largest size. */
function body(begin: string, piece: (index: number) => string, separator: string, end: string): Buffer {
  const room = MAX_BODY_BYTES - Buffer.byteLength(begin) - Buffer.byteLength(end);
  const pieces: Buffer[] = [];
  let length = 0;
  for (let index = 0; ; index++) {
    const bytes = Buffer.from((index === 0 ? '' : separator) + piece(index));
    length += bytes.length;
    if (length > room) break;
    pieces.push(bytes);
  }
  return Buffer.concat([Buffer.from(begin), ...pieces, Buffer.from(end)]);
}

const PET = '{"name":"Rex","categoryId":7,"status":"sold"';

/** Bodies of honest clients: a valid pet, with many members that the service does not know. */
const ORDINARY: Record<string, Buffer> = {
  pets: body(
    `${PET},"others":[`,
    (index) => `{"id":${1000 + index},"name":"Rex ${index}","categoryId":7,"status":"available"}`,
    ',',
    ']}',
  ),
  measurements: body(`${PET},"weights":[`, (index) => String(index * 1.37), ',', ']}'),
  text: body(`${PET},"note":"`, () => 'A dog that likes water.\\n', '', '"}'),
  'text that is not English': body(`${PET},"note":"`, () => 'Ein großer Hund für 5 €. ', '', '"}'),
};

/** Pieces that make a body expensive for some JSON parser. */
const PIECES: Record<string, (index: number) => string> = {
  'empty objects': () => '{}',
  fractions: () => '1.5e-1',
  'integers of 17 digits': (index) => `${90071992547409930n + BigInt(index)}`,
  'short strings': (index) => `"${index.toString(36)}"`,
  'strings with escapes': () => '"\\n\\u0041"',
  'objects of one member': () => '{"":1}',
  'objects of a name each': (index) => `{"${index.toString(36)}":0}`,
  'objects of nine members': () => '{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1,"i":1}',
  'long names with one beginning': (index) => `{"${'a'.repeat(500)}${index}":1,"${'a'.repeat(500)}":1}`,
  'deep objects': () => '{"a":'.repeat(25) + '1' + '}'.repeat(25),
  'white space': () => '\t \n 1',
};

const MEMBERS: Record<string, (index: number) => string> = {
  names: (index) => `"${index.toString(36)}":0`,
  'names of CJK characters': (index) => `"${String.fromCharCode(0x4e00 + index)}":0`,
  'names with escapes': (index) => `"\\n\\u00${(0x20 + (index % 0x60)).toString(16)}${index}":0`,
};

/** Pieces of which as many are sent as a body may have, with the number of values and names of each, at which an object is two. */
const DEAR: Record<string, [piece: (index: number) => string, cost: number]> = {
  'objects of a name each': [(index) => `{"${index.toString(36)}":0}`, 4],
  'deep objects of a name each': [
    (index) => {
      const names = Array.from({ length: 29 }, (_, level) => `{"${(29 * index + level).toString(36)}":`);
      return `${names.join('')}1${'}'.repeat(29)}`;
    },
    29 * 3 + 1,
  ],
  'objects with an integer of 17 digits': [(index) => `{"":${90071992547409930n + BigInt(index)}}`, 5],
  'objects of a name each with an exponent': [(index) => `{"${index.toString(36)}":1e16}`, 6],
  'integers with an exponent': [() => '1e1', 3],
  'objects of falling integers': [(index) => `{"${4_000_000_000 - 7 * index}":0}`, 4],
  'empty objects': [() => '{}', 2],
};

const DEAR_MEMBERS: typeof DEAR = {
  'names that are falling integers': [(index) => `"${90_000 - index}":1`, 2],
  'names that are large falling integers': [(index) => `"${4_000_000_000 - 7 * index}":1`, 2],
  'names whose hashes are equal in a small table': [(index) => `"${8192 * (index + 61)}":1`, 2],
  'distinct names': [(index) => `"${index.toString(36)}":0`, 2],
  'CJK names': [(index) => `"${String.fromCharCode(0x4e00 + index)}":0`, 2],
  'names with an exponent': [(index) => `"${index.toString(36)}":1e1`, 4],
};

/** A body with as many pieces as are taken, if they fit; `twice` names a member twice behind them. */
function full(begin: string, [piece, cost]: [(index: number) => string, number], end: string, twice: string): Buffer {
  const pieces: string[] = [];
  let room = MAX_BODY_BYTES - 100;
  for (let index = 0; (index + 1) * cost < MAX_VALUES - 20 && room > 0; index++) {
    pieces.push(piece(index));
    room -= (pieces.at(-1) as string).length + 1;
  }
  return Buffer.from(`{"name":"b","categoryId":1,"x":${begin}${pieces.join()}${end}${twice}}`);
}

const TEXTS: Record<string, () => string> = {
  letters: () => 'a',
  'long escapes': () => '\\u0041',
  'escaped surrogates': () => '\\ud83d',
  emoji: () => '\u{1f415}',
};

/** Values of a kind: what stands before, between and behind their pieces. */
const VALUES: [begin: string, separator: string, end: string, pieces: Record<string, (index: number) => string>][] = [
  ['[', ',', ']', PIECES],
  ['{', ',', '}', MEMBERS],
  ['"', '', '"', TEXTS],
  ['', '', '', { 'one numeral': () => '9' }],
  ['1.', '', '', { 'one fraction': () => '0' }],
  ['1e', '', '', { 'one exponent': () => '9' }],
];

/** Places of the expensive part in the body, such as the value of an unknown member. */
const PLACES = {
  'an unknown member': ['{"name":"b","categoryId":1,"x":', '}'],
  'a known member': ['{"categoryId":1,"name":', '}'],
  'the whole body': ['', ''],
} as const;

interface Attack {
  readonly name: string;
  readonly bytes: Buffer;
}

const attacks = (place: keyof typeof PLACES): Attack[] => {
  const [begin, end] = PLACES[place];
  return VALUES.flatMap(([before, separator, behind, pieces]) =>
    Object.entries(pieces).map(([name, piece]) => ({
      name: `${name} in ${place}`,
      bytes: body(begin + before, piece, separator, behind + end),
    })),
  );
};

/** The same attack with a fault at the very end: in the JSON, or in the UTF-8. */
const faulty = ({ name, bytes }: Attack): Attack[] => [
  { name: `${name}, and a fault at the end`, bytes: Buffer.concat([bytes.subarray(0, -1), Buffer.from('!')]) },
  { name: `${name}, and no UTF-8 at the end`, bytes: Buffer.concat([bytes.subarray(0, -1), Buffer.of(0xff)]) },
];

const ATTACKS = (Object.keys(PLACES) as (keyof typeof PLACES)[]).flatMap(attacks);
ATTACKS.push(...ATTACKS.filter(({ name }) => name.endsWith('in an unknown member')).flatMap(faulty));

for (const [begin, end, pieces] of [
  ['[', ']', DEAR],
  ['{', '}', DEAR_MEMBERS],
] as const) {
  for (const [name, piece] of Object.entries(pieces)) {
    ATTACKS.push({ name: `as many ${name} as are taken`, bytes: full(begin, piece, end, '') });
    ATTACKS.push({ name: `${name}, and a name twice`, bytes: full(begin, piece, end, ',"a":1,"a":2') });
  }
}

// ---- Measurement -----------------------------------------------------------------------------------------------------

const pipe = new InputPipe(new ApplicationConfig());

/** All processing of the body of createPet before its handler is called. */
const read = (bytes: Buffer): unknown => pipe.transform(readJson(bytes), { type: 'body', metatype: NewPet });

/** The smallest time of several readings in µs, because other work of the machine only adds to it. */
function costOf(bytes: Buffer, rounds: number): number {
  let time = Infinity;
  for (let round = 0; round < rounds; round++) {
    const began = performance.now();
    try {
      read(bytes);
    } catch {
      // A refusal also has a cost.
    }
    time = Math.min(time, 1000 * (performance.now() - began));
  }
  return time;
}

// Also lets V8 compile the measured code first. Ordinary bodies, and those with as many values as are taken, are not refused.
for (const bytes of Object.values(ORDINARY)) read(bytes);
for (const piece of Object.values(DEAR)) read(full('[', piece, ']', ''));
for (const piece of Object.values(DEAR_MEMBERS)) read(full('{', piece, '}', ''));
for (const { bytes } of ATTACKS) costOf(bytes, 1);
for (const bytes of Object.values(ORDINARY)) costOf(bytes, 30);
const dearest = Math.max(...Object.values(ORDINARY).map((bytes) => costOf(bytes, 30)));

/** As a multiple of the cost of the most expensive ordinary body. */
function ratioOf({ bytes }: Attack): number {
  let cost = costOf(bytes, 3);
  for (let round = 0; round < 100 && cost > MAX_RATIO * dearest; round++) cost = Math.min(cost, costOf(bytes, 10));
  return cost / dearest;
}

const ratios = ATTACKS.map((attack) => ({ name: attack.name, ratio: ratioOf(attack) }));
ratios.sort((one, other) => other.ratio - one.ratio);
for (const { name, ratio } of ratios.slice(0, 5)) process.stdout.write(`${ratio.toFixed(2)}  ${name}\n`);
if (ratios.some(({ ratio }) => ratio > MAX_RATIO)) process.exitCode = 1;
